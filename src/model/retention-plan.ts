// Plan of one step of retention, written once for every database: which of a tenant's old messages go, and which stay. It asks for
// rows, decides, and says what to remove; a driver answers all questions in one transaction.
//
// A message is a first event, its revisions and the events promoted from them. It goes as a whole, once all of its rows are too
// old. An event that was stored under the reference of a purged message names that message in `revises` and is a message of its own.
//
// The step walks the index by time and decides on a message where it meets its lowest id: so each one is looked at once in a walk.

import type { StoredEvent } from './event.ts'
import { promotedFrom } from './event-view.ts'
import type { Tenant } from './principal.ts'
import type { DeliveryState } from './processing.ts'

/** Rows that a step looks at, revisions of one message that it reads, and bytes that it removes, unless one message has more. */
const PURGE_ROWS = 100
const MAX_REVISIONS = 100
const PURGE_BYTES = 2 * 1024 * 1024

export interface PurgePosition {
  readonly receivedAt: number
  readonly id: number
}

/** Before every position. */
const START: PurgePosition = { receivedAt: -1, id: 0 }

export interface PurgeRequest {
  readonly tenant: Tenant
  /** What was received earlier is too old. */
  readonly before: number
  readonly now: number
  readonly purgesUnprocessed: boolean
  /** `next` of the step before. */
  readonly after: PurgePosition | null
  readonly dryRun: boolean
}

export interface PurgeStep {
  /** Messages that went, and their rows; with a dry run: that would go. */
  readonly messages: number
  readonly rows: number
  /** Messages that are too old and stay, because a subscription has not processed them. */
  readonly held: number
  /** When the oldest message that went was received. */
  readonly oldest: number | null
  /** Null: the end of what is too old. */
  readonly next: PurgePosition | null
}

export interface PurgeRow {
  readonly event: StoredEvent
  /** Null: not indexed yet. `isEvent`: it is handed out. */
  readonly entry: { readonly isEvent: boolean; readonly conversationId: number | null } | null
}

export interface PurgeDeliveries {
  readonly subscriptions: readonly { readonly id: number; readonly enqueuedUpTo: number }[]
  readonly deliveries: readonly {
    readonly eventId: number
    readonly subscription: number
    readonly state: DeliveryState
    readonly leaseExpiresAt: number | null
  }[]
}

export interface PurgeQuestions {
  /** Entries of the index after the position and too old, by time. */
  due: [{ after: PurgePosition | null; before: number; limit: number }, readonly PurgePosition[]]
  /** Those that the journal holds. */
  rows: [{ ids: readonly number[] }, readonly PurgeRow[]]
  /** Of first events that are gone: the lowest id of their revisions. */
  lowestRevisions: [{ firstIds: readonly number[] }, ReadonlyMap<number, number>]
  /**
   * Keeps new revisions of these messages from being stored until the transaction ends. Answers with the newest revision of each
   * first event that has one.
   */
  lock: [{ rows: readonly PurgeRow[]; firstIds: readonly number[] }, ReadonlyMap<number, number>]
  /** The newest of each first event. */
  revisions: [{ firstIds: readonly number[]; limit: number }, readonly PurgeRow[]]
  promoted: [{ revisionIds: readonly number[] }, readonly PurgeRow[]]
  deliveries: [{ ids: readonly number[] }, PurgeDeliveries]
  /** Removes rows of the journal and of processing, and notes them for the index. `firstIds`: of their messages. */
  remove: [{ rows: readonly PurgeRow[]; firstIds: readonly number[] }, unknown]
}

export type PurgeQuestion = {
  [N in keyof PurgeQuestions]: { readonly name: N; readonly ask: PurgeQuestions[N][0] }
}[keyof PurgeQuestions]
export type PurgePlan<T> = Generator<PurgeQuestion, T, unknown>

function* ask<N extends keyof PurgeQuestions>(name: N, about: PurgeQuestions[N][0]): PurgePlan<PurgeQuestions[N][1]> {
  return (yield { name, ask: about } as PurgeQuestion) as PurgeQuestions[N][1]
}

/** A row at which a message is decided on. */
interface Head {
  readonly at: PurgePosition
  /** The id of the first event, there or gone. */
  readonly firstId: number
  readonly row: PurgeRow
}

interface Message extends Head {
  readonly rows: readonly PurgeRow[]
  readonly newestRevision: number | undefined
  /** More revisions than were read: only those go, and the message is met again. */
  readonly isPart: boolean
}

export function* planRetention(request: PurgeRequest): PurgePlan<PurgeStep> {
  const { after, before, dryRun } = request
  const due = yield* ask('due', { after, before, limit: PURGE_ROWS })
  const messages = yield* readMessages(yield* findHeads(due))
  const old = messages.filter(({ rows }) => rows.every((row) => isOld(row, before)))
  const held = yield* findHeld(old, request)
  const free = old.filter((one) => !held.has(one))
  const going = dryRun ? free : yield* unchanged(withinBytes(free))
  const rows = going.flatMap((one) => one.rows)
  if (rows.length > 0 && !dryRun) yield* ask('remove', { rows, firstIds: going.map(({ firstId }) => firstId) })
  const seen = dryRun ? due.length : seenOf(due, free)
  return {
    messages: going.filter(({ isPart }) => dryRun || !isPart).length,
    rows: rows.length,
    held: Array.from(held).filter(({ at }) => due.indexOf(at) < seen).length,
    oldest: going.reduce<number | null>((oldest, { at }) => Math.min(oldest ?? at.receivedAt, at.receivedAt), null),
    next: seen < due.length ? (due[seen - 1] ?? after ?? START) : due.length === PURGE_ROWS ? due.at(-1)! : null,
  }
}

/** How many of the positions this step is done with: those before the first message that is left for the next. */
function seenOf(due: readonly PurgePosition[], free: readonly Message[]): number {
  const taken = withinBytes(free)
  const left = taken.at(-1)?.isPart ? taken.at(-1) : free[taken.length]
  return left ? due.indexOf(left.at) : due.length
}

/** A row without an entry is not looked at yet: the index may be behind, or be built again. */
function isOld({ event, entry }: PurgeRow, before: number): boolean {
  return event.receivedAt < before && (entry !== null || event.kind === 'revision')
}

function* findHeads(due: readonly PurgePosition[]): PurgePlan<Head[]> {
  if (due.length === 0) return []
  const found = new Map((yield* ask('rows', { ids: due.map(({ id }) => id) })).map((row) => [row.event.id, row]))
  const sources = Array.from(found.values()).flatMap(({ event }) => event.revises ?? promotedFrom(event) ?? [])
  const there = new Set(sources.filter((id) => found.has(id)))
  const unknown = Array.from(new Set(sources.filter((id) => !found.has(id))))
  if (unknown.length > 0) for (const { event } of yield* ask('rows', { ids: unknown })) there.add(event.id)
  const gone = unknown.filter((id) => !there.has(id))
  const lowest = gone.length > 0 ? yield* ask('lowestRevisions', { firstIds: gone }) : new Map<number, number>()
  return due.flatMap((at): Head[] => {
    const row = found.get(at.id)
    if (!row) return []
    const { revises } = row.event
    const source = revises ?? promotedFrom(row.event)
    // Met, or to be met, with the row that it came from.
    if (source !== null && there.has(source)) return []
    if (revises !== null && lowest.get(revises) !== at.id) return []
    return [{ at, firstId: revises ?? at.id, row }]
  })
}

function* readMessages(heads: readonly Head[]): PurgePlan<Message[]> {
  if (heads.length === 0) return []
  const firstIds = heads.map(({ firstId }) => firstId)
  const revisions = yield* ask('revisions', { firstIds, limit: MAX_REVISIONS + 1 })
  const byFirst = Map.groupBy(revisions, ({ event }) => event.revises!)
  const revisionIds = revisions.map(({ event }) => event.id)
  const promoted = revisionIds.length > 0 ? yield* ask('promoted', { revisionIds }) : []
  const bySource = Map.groupBy(promoted, ({ event }) => promotedFrom(event)!)
  return heads.map((head): Message => {
    const all = byFirst.get(head.firstId) ?? []
    const isPart = all.length > MAX_REVISIONS
    const newestFirst = all.toSorted((a, b) => b.event.id - a.event.id)
    const some = isPart ? newestFirst.slice(0, MAX_REVISIONS) : all
    const own = some.flatMap((row) => [row, ...(bySource.get(row.event.id) ?? [])])
    // The head of a message without its first event is one of the revisions.
    const rows = isPart || head.row.event.revises !== null ? own : [head.row, ...own]
    return { ...head, rows, newestRevision: newestFirst[0]?.event.id, isPart }
  })
}

/** Locked only now: nothing under a lease is, so that no release waits for it. */
function* unchanged(messages: readonly Message[]): PurgePlan<Message[]> {
  if (messages.length === 0) return []
  const [rows, firstIds] = [messages.map(({ row }) => row), messages.map(({ firstId }) => firstId)]
  const newest = yield* ask('lock', { rows, firstIds })
  return messages.filter((one) => newest.get(one.firstId) === one.newestRevision)
}

/** Those with a row that some subscription has not processed, or that is under a lease. */
function* findHeld(messages: readonly Message[], request: PurgeRequest): PurgePlan<Set<Message>> {
  const { now, purgesUnprocessed } = request
  const queued = messages.flatMap(({ rows }) => rows.filter(({ entry }) => entry?.isEvent))
  if (queued.length === 0) return new Set()
  const ids = queued.map(({ event }) => event.id)
  const { subscriptions, deliveries } = yield* ask('deliveries', { ids })
  const known = new Map(deliveries.map((one) => [`${one.subscription}:${one.eventId}`, one]))
  const isHeld = ({ event, entry }: PurgeRow): boolean =>
    entry?.isEvent === true &&
    subscriptions.some(({ id, enqueuedUpTo }) => {
      const delivery = known.get(`${id}:${event.id}`)
      if (delivery?.state === 'leased' && (delivery.leaseExpiresAt ?? 0) > now) return true
      if (purgesUnprocessed) return false
      return delivery ? delivery.state !== 'done' : event.id > enqueuedUpTo
    })
  return new Set(messages.filter(({ rows }) => rows.some(isHeld)))
}

/** At least one, and none behind one that is met again. */
function withinBytes(messages: readonly Message[]): Message[] {
  const some: Message[] = []
  let bytes = 0
  for (const message of messages) {
    if (bytes >= PURGE_BYTES) break
    some.push(message)
    if (message.isPart) break
    for (const { event } of message.rows) bytes += event.size
  }
  return some
}

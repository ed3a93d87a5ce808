// Makes pages of lists as JSON, in steps: for both drivers, in the thread that reads.

import { conversationView } from '../model/conversation-view.ts'
import { accessPathOf } from '../model/event-list.ts'
import { eventView } from '../model/event-view.ts'
import type { Tenant } from '../model/principal.ts'
import { DEFAULT_SUBSCRIPTION, type DeliveryState } from '../model/processing.ts'
import type { StoredRefusal } from '../model/refusal.ts'
import { refusalView } from '../model/refusal-view.ts'
import type { EventPosition, InboxReader, ListedEvent, StateFilter } from './contract/inbox.ts'
import type { JsonPage, ListReader } from './contract/lists.ts'
import type { QueueName } from './contract/processing.ts'

/** Entries of one page. 200 events are about 150 KiB. */
export const MAX_PAGE_BYTES = 256 * 1024
/** JSON between two turns: 32 KiB take less than 1 ms. */
export const STEP_BYTES = 32 * 1024
/** Refusals read at once: each has up to 64 KiB of a body. */
const REFUSALS_AT_ONCE = 16

type Later<T> = T | Promise<T>

/** What pages are made of. */
export interface PageSources {
  readonly inbox: {
    readonly [K in 'events' | 'revisions' | 'conversations' | 'conversationEvents']: (
      ...args: Parameters<InboxReader[K]>
    ) => Later<Awaited<ReturnType<InboxReader[K]>>>
  }
  readonly states: (queue: QueueName, ids: readonly number[], now: number) => Later<ReadonlyMap<number, DeliveryState>>
  readonly lastErrors: (queue: QueueName, ids: readonly number[]) => Later<ReadonlyMap<number, string>>
  readonly counts: (
    queue: QueueName,
    ids: readonly number[],
  ) => Later<ReadonlyMap<number, { readonly done: number; readonly dead: number }>>
  readonly refusals: (tenant: Tenant, beforeId: number, limit: number) => Later<readonly StoredRefusal[]>
  /** Lets others work between two steps. */
  readonly turn: () => Promise<void>
}

export function createJsonPages({ inbox, states, lastErrors, counts, refusals, turn }: PageSources): ListReader {
  const queueOf = ({ accountId, companyId }: Tenant): QueueName => ({
    tenant: { accountId, companyId },
    subscription: DEFAULT_SUBSCRIPTION,
  })

  /** An event without a delivery row is pending. Revisions are not processed. */
  const viewsWithState = async (tenant: Tenant, rows: readonly ListedEvent[], now: number) => {
    const ids = rows.filter(({ event }) => event.kind === 'event').map(({ event }) => event.id)
    const known = ids.length === 0 ? null : await states(queueOf(tenant), ids, now)
    return (row: ListedEvent) =>
      eventView(row, row.event.kind === 'event' ? (known?.get(row.event.id) ?? 'pending') : null)
  }

  const viewsInState = async (tenant: Tenant, rows: readonly ListedEvent[], { is, subscription }: StateFilter) => {
    if (is !== 'dead') return (row: ListedEvent) => eventView(row, is)
    const errors = await lastErrors({ ...queueOf(tenant), subscription }, rows.map(idOfEvent))
    return (row: ListedEvent) => eventView(row, is, errors.get(row.event.id) ?? null)
  }

  /** A page of rows of which one more than `limit` was read. */
  const pageOf = async <Row>(
    rows: readonly Row[],
    limit: number,
    viewOf: (row: Row) => object,
    idOf: (row: Row) => number,
  ): Promise<JsonPage> => {
    const page = new EntriesWriter(turn)
    const shown = await page.addAll(rows.slice(0, limit), viewOf)
    const next = rows.length > shown ? { id: idOf(rows[shown - 1]!), receivedAt: null } : null
    return { entries: page.finish(), next, partial: false }
  }

  return {
    async events(tenant, filter, after, limit, now, gone) {
      const { events, next, partial } = await inbox.events(tenant, filter, after, limit, gone)
      const viewOf = filter.state
        ? await viewsInState(tenant, events, filter.state)
        : await viewsWithState(tenant, events, now)
      const page = new EntriesWriter(turn)
      const shown = await page.addAll(events, viewOf)
      const entries = page.finish()
      const byTime = accessPathOf(filter) === 'time'
      if (shown < events.length) return { entries, next: positionOf(events[shown - 1]!, byTime), partial: false }
      return { entries, next: next && { id: next.id, receivedAt: byTime ? next.receivedAt : null }, partial }
    },

    async revisions(tenant, eventId, afterId, limit) {
      const rows = await inbox.revisions(tenant, eventId, afterId, limit + 1)
      return pageOf(rows, limit, (row) => eventView(row, null), idOfEvent)
    },

    async conversations(tenant, beforeEventId, limit) {
      const rows = await inbox.conversations(tenant, beforeEventId, limit + 1)
      const ids = rows.map(({ id }) => id)
      const settled = ids.length === 0 ? null : await counts(queueOf(tenant), ids)
      return pageOf(
        rows,
        limit,
        (row) => {
          const { done, dead } = settled?.get(row.id) ?? { done: 0, dead: 0 }
          return conversationView(row, done + dead)
        },
        ({ lastEventId }) => lastEventId,
      )
    },

    async conversationEvents(tenant, conversationId, afterId, limit, now) {
      const rows = await inbox.conversationEvents(tenant, conversationId, afterId, limit + 1)
      return pageOf(rows, limit, await viewsWithState(tenant, rows, now), idOfEvent)
    },

    async refusals(tenant, beforeId, limit) {
      const page = new EntriesWriter(turn)
      let last = beforeId
      while (page.count < limit) {
        const wanted = Math.min(REFUSALS_AT_ONCE, limit - page.count)
        const rows = await refusals(tenant, last, wanted + 1)
        const shown = await page.addAll(rows.slice(0, wanted), refusalView)
        last = rows[shown - 1]?.id ?? last
        if (rows.length <= wanted && shown === rows.length)
          return { entries: page.finish(), next: null, partial: false }
        if (shown < wanted) break
      }
      return { entries: page.finish(), next: { id: last, receivedAt: null }, partial: false }
    },
  }
}

function idOfEvent({ event }: ListedEvent): number {
  return event.id
}

function positionOf({ event }: ListedEvent, byTime: boolean): EventPosition {
  return { id: event.id, receivedAt: byTime ? event.receivedAt : null }
}

/** Writes the JSON array of one page, until it is full. */
class EntriesWriter {
  readonly #turn: () => Promise<void>
  readonly #parts: Buffer[] = []
  #bytes = 0
  #bytesInStep = 0

  constructor(turn: () => Promise<void>) {
    this.#turn = turn
  }

  get count(): number {
    return this.#parts.length
  }

  /** How many of the rows fitted, at least one on an empty page. */
  async addAll<Row>(rows: readonly Row[], viewOf: (row: Row) => object): Promise<number> {
    for (const [n, row] of rows.entries()) {
      if (this.#bytesInStep >= STEP_BYTES) {
        await this.#turn()
        this.#bytesInStep = 0
      }
      const entry = Buffer.from(JSON.stringify(viewOf(row)))
      if (this.count > 0 && this.#bytes + entry.length > MAX_PAGE_BYTES) return n
      this.#parts.push(entry)
      this.#bytes += entry.length
      this.#bytesInStep += entry.length
    }
    return rows.length
  }

  /** In memory of its own, which can be given to another thread. */
  finish(): Uint8Array<ArrayBuffer> {
    const all = new Uint8Array(this.#bytes + Math.max(0, this.count - 1) + 2)
    let at = 0
    for (const [n, part] of this.#parts.entries()) {
      all[at++] = n === 0 ? OPENING : COMMA
      all.set(part, at)
      at += part.length
    }
    if (at === 0) all[at++] = OPENING
    all[at] = CLOSING
    return all
  }
}

const OPENING = '['.charCodeAt(0)
const COMMA = ','.charCodeAt(0)
const CLOSING = ']'.charCodeAt(0)

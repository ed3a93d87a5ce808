// The checker: holds everything that is stored against the client's journal, read back from disk.
//
//   acknowledged   must be there once, with its bytes, under the id of the answer      else lost, twice, altered, misnumbered
//   unknown        may be there once or not at all                                     else twice, altered
//   refused        must not be there                                                   else resurrected
//   conversation   what was acknowledged before another was first sent comes first     else misordered
//
// A message is recognised by its bytes, not by what the store says about it; where bytes are nobody's, its reference or
// the id it was acknowledged under tells whose they were.

import { createHash } from 'node:crypto'
import type { Inbox, StoredPayload, StoredRow } from './inbox.ts'
import { type AnswerLine, type Intent, type Line, readJournal } from './journal.ts'
import type { Counts } from './proof.ts'

interface Told {
  readonly number: number
  readonly first: Intent
  readonly sha256: string
  attempts: number
  /** The id of the first acknowledgement. */
  acknowledgedId: number | null
  everUnknown: boolean
  /** Without an acknowledgement, was there an attempt that may have stored it? */
  mayBeStored: boolean
  /** The service will not take these bytes, and so cannot have taken them before. */
  isUnusable: boolean
  /** The highest id of its conversation that had been acknowledged when it was first sent. */
  floor: number
  /** Acknowledged again under another id. */
  ids: Set<number>
}

export interface Findings {
  readonly counts: Omit<Counts, 'faults'>
  /** Still unknown: nobody sent them again. */
  readonly unsettled: number
  /** Of these, so many are there: allowed. */
  readonly storedUnknown: number
  /** There, and nobody sent them. Counted as altered. */
  readonly foreign: number
  /** What is wrong, the first few in words. */
  readonly examples: readonly string[]
}

const MAX_EXAMPLES = 20
/** Statuses that are about the bytes, and would be the same another time. */
const FOR_WHAT_IT_IS = [400, 413, 415, 422]

/** Reads everything that is stored and compares. The service must be up. */
export async function check(
  journalPath: string,
  inbox: Pick<Inbox, 'rows' | 'payloads' | 'conversations'>,
): Promise<Findings> {
  const told = fromJournal(readJournal(journalPath))
  const rows = await inbox.rows()
  const payloads = await inbox.payloads(rows.map(({ id }) => id))
  return compare(told, rows, payloads, await inbox.conversations())
}

function fromJournal(lines: readonly Line[]): Map<number, Told> {
  const messages = new Map<number, Told>()
  const byAttempt = new Map<number, { told: Told; isAnswered: boolean }>()
  const newest = new Map<string, number>()
  for (const line of lines) {
    if (line.type === 'intent') {
      const known = messages.get(line.message) ?? newTold(line, newest)
      known.attempts += 1
      messages.set(line.message, known)
      byAttempt.set(line.attempt, { told: known, isAnswered: false })
      continue
    }
    const attempt = byAttempt.get(line.attempt)!
    attempt.isAnswered = true
    note(attempt.told, line, newest)
  }
  for (const { told, isAnswered } of byAttempt.values()) if (!isAnswered) markUnknown(told)
  for (const told of messages.values()) if (told.isUnusable) told.mayBeStored = false
  return messages
}

function newTold(line: Intent, newest: Map<string, number>): Told {
  const body = Buffer.from(line.body ?? '', 'base64')
  return {
    number: line.message,
    first: line,
    sha256: createHash('sha256').update(body).digest('hex'),
    attempts: 0,
    acknowledgedId: null,
    everUnknown: false,
    mayBeStored: false,
    isUnusable: false,
    floor: line.channel === null ? 0 : (newest.get(line.channel) ?? 0),
    ids: new Set(),
  }
}

function note(told: Told, line: AnswerLine, newest: Map<string, number>): void {
  if (line.outcome === 'unknown') markUnknown(told)
  if (line.outcome === 'refused' && FOR_WHAT_IT_IS.includes(line.status)) told.isUnusable = true
  if (line.outcome !== 'acknowledged') return
  told.acknowledgedId ??= line.id!
  told.ids.add(line.id!)
  const { channel, conflictsWith } = told.first
  if (channel !== null && conflictsWith === null) newest.set(channel, Math.max(newest.get(channel) ?? 0, line.id!))
}

function markUnknown(told: Told): void {
  told.everUnknown = true
  told.mayBeStored = true
}

function compare(
  messages: ReadonlyMap<number, Told>,
  rows: readonly StoredRow[],
  payloads: ReadonlyMap<number, StoredPayload>,
  conversations: ReadonlyMap<string, readonly number[]>,
): Findings {
  const all = [...messages.values()]
  const bySha = new Map(all.map((told) => [told.sha256, told]))
  const byRef = new Map(
    all.filter(({ first }) => first.ref && !first.conflictsWith).map((told) => [told.first.ref!, told]),
  )
  const byId = new Map(all.filter(({ first }) => !first.conflictsWith).map((told) => [told.acknowledgedId, told]))
  const stored = new Map<Told, StoredRow[]>()
  const wrong = { lost: 0, twice: 0, altered: 0, resurrected: 0, misordered: 0, misnumbered: 0 }
  const examples: string[] = []
  let foreign = 0
  const blame = (what: keyof typeof wrong, example: string): void => {
    wrong[what] += 1
    if (examples.length < MAX_EXAMPLES) examples.push(`${what}: ${example}`)
  }

  for (const row of rows) {
    const { status, sha256 } = payloads.get(row.id)!
    const exact = sha256 === null ? undefined : bySha.get(sha256)
    const told = exact ?? byId.get(row.id) ?? byRef.get(row.source_ref ?? '')
    if (!exact || sha256 !== row.sha256) blame('altered', `event ${row.id} (payload answered ${status})`)
    if (told) stored.set(told, [...(stored.get(told) ?? []), row])
    else foreign += 1
  }
  const filed = new Map([...conversations].map(([channel, ids]) => [channel, new Set(ids)]))
  for (const [channel, ids] of conversations) {
    if (ids.some((id, at) => at > 0 && id <= ids[at - 1]!)) blame('misordered', `the list of conversation ${channel}`)
  }
  for (const told of all) {
    const found = stored.get(told) ?? []
    const name = `message ${told.number}`
    const { channel, conflictsWith } = told.first
    if (told.acknowledgedId === null && !told.mayBeStored && found.length > 0) blame('resurrected', name)
    if (told.acknowledgedId !== null && found.length === 0) blame('lost', `${name}, id ${told.acknowledgedId}`)
    if (found.length > 1) blame('twice', `${name} as ${found.map(({ id }) => id).join(', ')}`)
    const row = found[0]
    if (!row) continue
    const answered = row.kind === 'revision' ? row.revises : row.id
    if (told.acknowledgedId !== null && (told.ids.size > 1 || answered !== told.acknowledgedId)) {
      blame('misnumbered', `${name}: answered ${[...told.ids].join(', ')}, is ${row.id}`)
    }
    if (channel === null || conflictsWith !== null) continue
    if (row.id <= told.floor) blame('misordered', `${name}, id ${row.id}, after ${told.floor}`)
    if (row.kind === 'event' && !filed.get(channel)?.has(row.id)) blame('lost', `${name} from its conversation`)
  }

  const unsettled = all.filter((told) => told.acknowledgedId === null && told.mayBeStored)
  return {
    counts: {
      sent: all.length,
      acknowledged: all.filter(({ acknowledgedId }) => acknowledgedId !== null).length,
      unknown: all.filter(({ everUnknown }) => everUnknown).length,
      refused: all.filter((told) => told.acknowledgedId === null && !told.mayBeStored).length,
      resent: all.reduce((sum, { attempts }) => sum + attempts - 1, 0),
      ...wrong,
    },
    unsettled: unsettled.length,
    storedUnknown: unsettled.filter((told) => stored.has(told)).length,
    foreign,
    examples,
  }
}

// Checks everything stored against the client's journal, read back from disk.
//
//   acknowledged   must be there once, with its bytes, under the id of the answer      else lost, twice, altered, misnumbered
//   unknown        may be there once or not at all                                     else twice, altered
//   refused        must not be there                                                   else resurrected
//   conversation   a message acknowledged before another was first sent precedes it    else misordered
//
// A message is recognised by its bytes, not by what the store says about it; if no message has the bytes, its reference
// or the id of its acknowledgement tells which message it was.

import { createHash } from 'node:crypto'
import type { Inbox, StoredPayload, StoredRow } from './inbox.ts'
import { type AnswerLine, type Intent, type Line, readJournal } from './journal.ts'
import type { Counts } from './proof.ts'

interface MessageRecord {
  readonly number: number
  readonly first: Intent
  readonly sha256: string
  attempts: number
  /** The id of the first acknowledgement. */
  acknowledgedId: number | null
  everUnknown: boolean
  /** Without an acknowledgement: may an attempt have stored it? */
  mayBeStored: boolean
  /** The service refuses these bytes for their content, so it cannot have stored them before. */
  isUnusable: boolean
  /** The highest id of its conversation that had been acknowledged when it was first sent. */
  floor: number
  /** Ids of all its acknowledgements. */
  ids: Set<number>
}

export interface Findings {
  readonly counts: Omit<Counts, 'faults'>
  /** Unknown, and not sent again. */
  readonly unsettled: number
  /** Of these, how many are stored: allowed. */
  readonly storedUnknown: number
  /** Stored, but sent by no client. Counted as altered. */
  readonly foreign: number
  /** The first violations, in words. */
  readonly examples: readonly string[]
}

const MAX_EXAMPLES = 20
/** Statuses that depend on the bytes alone, and would be the same another time. */
const CONTENT_STATUSES = [400, 413, 415, 422]

/** Reads everything stored and compares. The service must be running. */
export async function check(
  journalPath: string,
  inbox: Pick<Inbox, 'rows' | 'payloads' | 'conversations'>,
): Promise<Findings> {
  const records = fromJournal(readJournal(journalPath))
  const rows = await inbox.rows()
  const payloads = await inbox.payloads(rows.map(({ id }) => id))
  return compare(records, rows, payloads, await inbox.conversations())
}

function fromJournal(lines: readonly Line[]): Map<number, MessageRecord> {
  const messages = new Map<number, MessageRecord>()
  const byAttempt = new Map<number, { record: MessageRecord; isAnswered: boolean }>()
  const newest = new Map<string, number>()
  for (const line of lines) {
    if (line.type === 'intent') {
      const known = messages.get(line.message) ?? newRecord(line, newest)
      known.attempts += 1
      messages.set(line.message, known)
      byAttempt.set(line.attempt, { record: known, isAnswered: false })
      continue
    }
    const attempt = byAttempt.get(line.attempt)!
    attempt.isAnswered = true
    note(attempt.record, line, newest)
  }
  for (const { record, isAnswered } of byAttempt.values()) if (!isAnswered) markUnknown(record)
  for (const record of messages.values()) if (record.isUnusable) record.mayBeStored = false
  return messages
}

function newRecord(line: Intent, newest: Map<string, number>): MessageRecord {
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

function note(record: MessageRecord, line: AnswerLine, newest: Map<string, number>): void {
  if (line.outcome === 'unknown') markUnknown(record)
  if (line.outcome === 'refused' && CONTENT_STATUSES.includes(line.status)) record.isUnusable = true
  if (line.outcome !== 'acknowledged') return
  record.acknowledgedId ??= line.id!
  record.ids.add(line.id!)
  const { channel, conflictsWith } = record.first
  if (channel !== null && conflictsWith === null) newest.set(channel, Math.max(newest.get(channel) ?? 0, line.id!))
}

function markUnknown(record: MessageRecord): void {
  record.everUnknown = true
  record.mayBeStored = true
}

function compare(
  messages: ReadonlyMap<number, MessageRecord>,
  rows: readonly StoredRow[],
  payloads: ReadonlyMap<number, StoredPayload>,
  conversations: ReadonlyMap<string, readonly number[]>,
): Findings {
  const all = [...messages.values()]
  const bySha = new Map(all.map((record) => [record.sha256, record]))
  const byRef = new Map(
    all.filter(({ first }) => first.ref && !first.conflictsWith).map((record) => [record.first.ref!, record]),
  )
  const byId = new Map(all.filter(({ first }) => !first.conflictsWith).map((record) => [record.acknowledgedId, record]))
  const stored = new Map<MessageRecord, StoredRow[]>()
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
    const record = exact ?? byId.get(row.id) ?? byRef.get(row.source_ref ?? '')
    if (!exact || sha256 !== row.sha256) blame('altered', `event ${row.id} (payload answered ${status})`)
    if (record) stored.set(record, [...(stored.get(record) ?? []), row])
    else foreign += 1
  }
  const filed = new Map([...conversations].map(([channel, ids]) => [channel, new Set(ids)]))
  for (const [channel, ids] of conversations) {
    if (ids.some((id, at) => at > 0 && id <= ids[at - 1]!)) blame('misordered', `the list of conversation ${channel}`)
  }
  for (const record of all) {
    const found = stored.get(record) ?? []
    const name = `message ${record.number}`
    const { channel, conflictsWith } = record.first
    if (record.acknowledgedId === null && !record.mayBeStored && found.length > 0) blame('resurrected', name)
    if (record.acknowledgedId !== null && found.length === 0) blame('lost', `${name}, id ${record.acknowledgedId}`)
    if (found.length > 1) blame('twice', `${name} as ${found.map(({ id }) => id).join(', ')}`)
    const row = found[0]
    if (!row) continue
    const answered = row.kind === 'revision' ? row.revises : row.id
    if (record.acknowledgedId !== null && (record.ids.size > 1 || answered !== record.acknowledgedId)) {
      blame('misnumbered', `${name}: answered ${[...record.ids].join(', ')}, is ${row.id}`)
    }
    if (channel === null || conflictsWith !== null) continue
    if (row.id <= record.floor) blame('misordered', `${name}, id ${row.id}, after ${record.floor}`)
    if (row.kind === 'event' && !filed.get(channel)?.has(row.id)) blame('lost', `${name} from its conversation`)
  }

  const unsettled = all.filter((record) => record.acknowledgedId === null && record.mayBeStored)
  return {
    counts: {
      sent: all.length,
      acknowledged: all.filter(({ acknowledgedId }) => acknowledgedId !== null).length,
      unknown: all.filter(({ everUnknown }) => everUnknown).length,
      refused: all.filter((record) => record.acknowledgedId === null && !record.mayBeStored).length,
      resent: all.reduce((sum, { attempts }) => sum + attempts - 1, 0),
      ...wrong,
    },
    unsettled: unsettled.length,
    storedUnknown: unsettled.filter((record) => stored.has(record)).length,
    foreign,
    examples,
  }
}

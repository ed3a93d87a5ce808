// Writes the index rows of one step on PostgreSQL, one statement per table.

import {
  conversationKey,
  type Derived,
  groupByConversation,
  indexedWords,
  type RepeatCount,
  unindexed,
} from '../../../model/index-step.ts'
import type { TrafficTally } from '../../../model/traffic.ts'
import type { Cell } from '../../contract/copy.ts'
import {
  CONVERSATIONS,
  conversationValues,
  ENTRIES,
  entryValues,
  type IndexTable,
  REPEATS,
  repeatValues,
  TRAFFIC,
  trafficValues,
} from '../../index-rows.ts'
import { bigints, packColumns, texts, unnested, unnestedColumns } from '../connection/binary-array.ts'
import type { Connection, Statement } from '../connection/connection.ts'
import { inTurns } from './turns.ts'

const CONVERSATION_COLUMNS = Object.keys(CONVERSATIONS.columns)
const INSERT_ENTRIES: Statement = { name: 'intray_insert_entries', text: insertInto(ENTRIES) }
const MARK_ENTRY: Statement = {
  name: 'intray_mark_entry',
  text: 'UPDATE intray.event_index SET unindexed = $1 WHERE company_id = $2 AND account_id = $3 AND event_id = $4',
}
/** The words of an event are one text, separated by spaces. */
const INSERT_WORDS: Statement = {
  name: 'intray_insert_words',
  text: `INSERT INTO intray.event_words (company_id, account_id, event_id, words)
  SELECT ${unnested('bigint bigint bigint')}, array_to_tsvector(string_to_array(unnest($4::text[]), ' '))`,
}
/** A conversation that lost events keeps its id. */
const UPSERT_CONVERSATIONS: Statement = {
  name: 'intray_upsert_conversations',
  text: `INSERT INTO intray.conversations (${CONVERSATION_COLUMNS.join(', ')})
  SELECT ${CONVERSATION_COLUMNS.map((name) => (name === 'id' ? 'coalesce(k.id, c.id)' : `c.${name}`)).join(', ')}
  FROM (SELECT ${unnestedColumns(Object.values(CONVERSATIONS.columns))}) AS c (${CONVERSATION_COLUMNS.join(', ')})
  LEFT JOIN intray.conversation_ids k USING (company_id, account_id, channel_key)
  ON CONFLICT (company_id, account_id, channel_key) DO UPDATE SET
    channel_ref = CASE WHEN conversations.erased_count = conversations.event_count THEN excluded.channel_ref
      ELSE conversations.channel_ref END,
    event_count = conversations.event_count + excluded.event_count,
    erased_count = conversations.erased_count + excluded.erased_count,
    last_event_id = excluded.last_event_id,
    last_received_at = excluded.last_received_at,
    last_contact_name = excluded.last_contact_name,
    last_contact_email = excluded.last_contact_email,
    last_snippet = excluded.last_snippet
  RETURNING company_id || ':' || account_id || ':' || channel_key AS key, id`,
}
const UPSERT_REPEATS: Statement = {
  name: 'intray_upsert_repeats',
  text: `${insertInto(REPEATS)}
  ON CONFLICT (company_id, event_id) DO UPDATE SET
    resends = repeats.resends + excluded.resends,
    revisions = repeats.revisions + excluded.revisions,
    last_seen_at = greatest(repeats.last_seen_at, excluded.last_seen_at)`,
}
const UPSERT_TRAFFIC: Statement = {
  name: 'intray_upsert_traffic',
  text: `${insertInto(TRAFFIC)}
  ON CONFLICT (company_id, account_id, span, at, key_id) DO UPDATE SET
    events = traffic.events + excluded.events,
    resends = traffic.resends + excluded.resends,
    revisions = traffic.revisions + excluded.revisions`,
}

function insertInto({ name, columns }: IndexTable): string {
  return `INSERT INTO intray.${name} (${Object.keys(columns).join(', ')})
  SELECT ${unnestedColumns(Object.values(columns))}`
}

function valuesFor({ columns }: IndexTable, rows: readonly (readonly Cell[])[]): Buffer[] {
  return packColumns(Object.values(columns), rows)
}

export type WriteEvents = (connection: Connection, derived: readonly Derived[]) => Promise<readonly Derived[]>

/** Writes all rows as they are. */
export const writeEvents: WriteEvents = async (connection, derived) => {
  if (derived.length > 0) await write(connection, derived)
  return derived
}

/** Writes each row in its own savepoint; a row that cannot be written is marked, and returned as it was written. */
export const writeEachAlone: WriteEvents = async (connection, derived) => {
  const written: Derived[] = []
  for (const one of derived) written.push(await writeAlone(connection, one))
  return written
}

/** Writes the row as it is; else without extracted fields but in its conversation; else as a bare entry. */
async function writeAlone(connection: Connection, one: Derived): Promise<Derived> {
  const failure = await connection.savepoint(() => write(connection, [one]))
  if (failure === null) return one
  const marked = unindexed(one.row, failure)
  if ((await connection.savepoint(() => write(connection, [marked]))) !== null) {
    await connection.query(INSERT_ENTRIES, valuesFor(ENTRIES, [entryValues(marked, null)]))
  }
  return marked
}

/** Does not wait for the entries: if they fail, so does the next awaited statement. */
async function write(connection: Connection, derived: readonly Derived[]): Promise<void> {
  const conversations = await upsertConversations(connection, Array.from(groupByConversation(derived).values()))
  const entries = derived.map((one) => {
    const key = conversationKey(one.row)
    return entryValues(one, key === null ? null : (conversations.get(key) ?? null))
  })
  connection.send(INSERT_ENTRIES, valuesFor(ENTRIES, entries))
}

/** The ids of the conversations, by key. */
async function upsertConversations(
  connection: Connection,
  groups: readonly (readonly Derived[])[],
): Promise<Map<string, number>> {
  if (groups.length === 0) return new Map()
  const values = valuesFor(CONVERSATIONS, groups.map(conversationValues))
  const rows = await connection.query<{ key: string; id: number }>(UPSERT_CONVERSATIONS, values)
  return new Map(rows.map(({ key, id }) => [key, id]))
}

/** Returns how many rows could not be written. */
export type WriteWords = (connection: Connection, derived: readonly Derived[], maxWords: number) => Promise<number>

/** Writes the words of all rows. */
export const writeWords: WriteWords = async (connection, derived, maxWords) => {
  await insertWords(connection, derived, maxWords)
  return 0
}

/** Writes the words of each row in its own savepoint; where that fails, marks the entry. */
export const writeEachWordsAlone: WriteWords = async (connection, derived, maxWords) => {
  let failed = 0
  for (const one of derived) {
    const failure = await connection.savepoint(() => insertWords(connection, [one], maxWords))
    if (failure === null) continue
    failed += 1
    const { companyId, accountId, id } = one.row
    await connection.query(MARK_ENTRY, [unindexed(one.row, failure).unindexed, companyId, accountId, id])
  }
  return failed
}

async function insertWords(connection: Connection, derived: readonly Derived[], maxWords: number): Promise<void> {
  const cut = await inTurns(
    derived,
    ({ row }) => row.size,
    (one) => ({ row: one.row, words: indexedWords(one, maxWords) }),
  )
  const found = cut.flatMap(({ row, words }) => (words === null ? [] : [{ row, words }]))
  if (found.length === 0) return
  await connection.query(INSERT_WORDS, [
    bigints(found.map(({ row }) => row.companyId)),
    bigints(found.map(({ row }) => row.accountId)),
    bigints(found.map(({ row }) => row.id)),
    texts(found.map(({ words }) => words)),
  ])
}

/** Does not wait, like write(). */
export function writeRepeats(connection: Connection, counts: readonly RepeatCount[]): void {
  if (counts.length > 0) connection.send(UPSERT_REPEATS, valuesFor(REPEATS, counts.map(repeatValues)))
}

/** Does not wait, like write(). */
export function writeTraffic(connection: Connection, tally: TrafficTally): void {
  const rows = tally.rows()
  if (rows.length > 0) connection.send(UPSERT_TRAFFIC, valuesFor(TRAFFIC, rows.map(trafficValues)))
}

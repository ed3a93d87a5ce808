// What the indexer writes for the rows of one step: a statement for all conversations, one for all entries, one for all
// counts of re-sends.

import type { EventKind } from '../../model/event.ts'
import { type Extract, storable } from '../../model/extract.ts'
import { foldEmail, spanOf, wordPrefix } from '../../model/words.ts'
import { bigints, texts, unnested } from './binary-array.ts'
import type { Connection, Statement } from './connection.ts'

const INSERT_ENTRIES: Statement = {
  name: 'intray_insert_entries',
  text: `INSERT INTO intray.event_index (company_id, account_id, event_id, kind, received_at, key_id, scope,
    conversation_id, contact_name, contact_email, email_key, message_type, snippet, warnings, unindexed)
  SELECT ${unnested('bigint bigint bigint text bigint text text bigint text text text text text text text')}`,
}
/** The words of an event come as one text, with spaces between. */
const INSERT_WORDS: Statement = {
  name: 'intray_insert_words',
  text: `INSERT INTO intray.event_words (company_id, account_id, event_id, words)
  SELECT ${unnested('bigint bigint bigint')}, array_to_tsvector(string_to_array(unnest($4::text[]), ' '))`,
}
const UPSERT_CONVERSATIONS: Statement = {
  name: 'intray_upsert_conversations',
  text: `INSERT INTO intray.conversations AS c (company_id, account_id, channel_ref, id, event_count, first_received_at,
    last_event_id, last_received_at, first_contact_name, first_contact_email, last_contact_name, last_contact_email,
    last_snippet)
  SELECT ${unnested('bigint bigint text bigint bigint bigint bigint bigint text text text text text')}
  ON CONFLICT (company_id, account_id, channel_ref) DO UPDATE SET
    event_count = c.event_count + excluded.event_count,
    last_event_id = excluded.last_event_id,
    last_received_at = excluded.last_received_at,
    last_contact_name = excluded.last_contact_name,
    last_contact_email = excluded.last_contact_email,
    last_snippet = excluded.last_snippet
  RETURNING company_id, account_id, channel_ref, id`,
}
const UPSERT_REPEATS: Statement = {
  name: 'intray_upsert_repeats',
  text: `INSERT INTO intray.repeats AS r (company_id, event_id, resends, revisions, last_seen_at)
  SELECT ${unnested('bigint bigint bigint bigint bigint')}
  ON CONFLICT (company_id, event_id) DO UPDATE SET
    resends = r.resends + excluded.resends,
    revisions = r.revisions + excluded.revisions,
    last_seen_at = greatest(r.last_seen_at, excluded.last_seen_at)`,
}

const MAX_REASON = 200

/** What a step reads of an event. */
export interface JournalRow {
  readonly id: number
  readonly kind: EventKind
  readonly revises: number | null
  readonly account_id: number
  readonly company_id: number
  readonly received_at: number
  readonly channel_ref: string | null
  readonly size: number
  readonly sha256: Uint8Array
  readonly key_id: string
  readonly scope: string
  readonly payload: Uint8Array | null
}

export interface ResendRow {
  readonly id: number
  readonly company_id: number
  readonly event_id: number
  readonly received_at: number
  readonly key_id: string
  readonly account_id: number | null
}

export interface Derived {
  readonly row: JournalRow
  readonly fields: Extract | null
  readonly unindexed: string | null
}

export async function foldAll(connection: Connection, derived: readonly Derived[]): Promise<readonly Derived[]> {
  await fold(connection, derived)
  return derived
}

export async function foldEachAlone(connection: Connection, derived: readonly Derived[]): Promise<readonly Derived[]> {
  const written: Derived[] = []
  for (const one of derived) written.push(await foldAlone(connection, one))
  return written
}

/** As it is; else without what was read from it, but in its conversation; else as a bare entry. */
async function foldAlone(connection: Connection, one: Derived): Promise<Derived> {
  const failed = await connection.savepoint(() => fold(connection, [one]))
  if (failed === null) return one
  const marked = { row: one.row, fields: null, unindexed: reasonOf(failed) }
  if ((await connection.savepoint(() => fold(connection, [marked]))) !== null) {
    await insertEntries(connection, [marked], new Map())
  }
  return marked
}

async function fold(connection: Connection, derived: readonly Derived[]): Promise<void> {
  if (derived.length === 0) return
  const repeats = new Repeats()
  const groups = new Map<string, Derived[]>()
  for (const one of derived) {
    const { row } = one
    if (row.kind === 'revision') {
      repeats.add(row.company_id, row.revises!, { revisions: 1 }, row.received_at)
    } else if (row.channel_ref !== null) {
      const key = keyOf(row.company_id, row.account_id, row.channel_ref)
      const group = groups.get(key)
      if (group) group.push(one)
      else groups.set(key, [one])
    }
  }
  await repeats.write(connection)
  await insertEntries(connection, derived, await upsertConversations(connection, Array.from(groups.values())))
}

/** The ids of the conversations, by key. */
async function upsertConversations(
  connection: Connection,
  groups: readonly (readonly Derived[])[],
): Promise<Map<string, number>> {
  if (groups.length === 0) return new Map()
  const firsts = groups.map((group) => group[0]!)
  const lasts = groups.map((group) => group.at(-1)!)
  const rows = await connection.query<{ company_id: number; account_id: number; channel_ref: string; id: number }>(
    UPSERT_CONVERSATIONS,
    [
      bigints(firsts.map(({ row }) => row.company_id)),
      bigints(firsts.map(({ row }) => row.account_id)),
      texts(firsts.map(({ row }) => row.channel_ref)),
      bigints(firsts.map(({ row }) => row.id)),
      bigints(groups.map((group) => group.length)),
      bigints(firsts.map(({ row }) => row.received_at)),
      bigints(lasts.map(({ row }) => row.id)),
      bigints(lasts.map(({ row }) => row.received_at)),
      texts(firsts.map(({ fields }) => fields?.contactName ?? null)),
      texts(firsts.map(({ fields }) => fields?.contactEmail ?? null)),
      texts(lasts.map(({ fields }) => fields?.contactName ?? null)),
      texts(lasts.map(({ fields }) => fields?.contactEmail ?? null)),
      texts(lasts.map(({ fields }) => fields?.snippet ?? null)),
    ],
  )
  return new Map(rows.map((row) => [keyOf(row.company_id, row.account_id, row.channel_ref), row.id]))
}

async function insertEntries(
  connection: Connection,
  derived: readonly Derived[],
  conversations: ReadonlyMap<string, number>,
): Promise<void> {
  const conversationOf = ({ row }: Derived): number | null => {
    if (row.kind === 'revision' || row.channel_ref === null) return null
    return conversations.get(keyOf(row.company_id, row.account_id, row.channel_ref)) ?? null
  }
  await connection.query(INSERT_ENTRIES, [
    bigints(derived.map(({ row }) => row.company_id)),
    bigints(derived.map(({ row }) => row.account_id)),
    bigints(derived.map(({ row }) => row.id)),
    texts(derived.map(({ row }) => row.kind)),
    bigints(derived.map(({ row }) => row.received_at)),
    texts(derived.map(({ row }) => row.key_id)),
    texts(derived.map(({ row }) => row.scope)),
    bigints(derived.map(conversationOf)),
    texts(derived.map(({ fields }) => fields?.contactName ?? null)),
    texts(derived.map(({ fields }) => fields?.contactEmail ?? null)),
    texts(derived.map(({ fields }) => (fields?.contactEmail ? foldEmail(fields.contactEmail) : null))),
    texts(derived.map(({ fields }) => fields?.messageType ?? null)),
    texts(derived.map(({ fields }) => fields?.snippet ?? null)),
    texts(derived.map(({ fields }) => (fields?.warnings.length ? JSON.stringify(fields.warnings) : null))),
    texts(derived.map(({ unindexed }) => unindexed)),
  ])
  await insertWords(
    connection,
    derived.filter(({ fields }) => fields && fields.words.length > 0),
  )
}

async function insertWords(connection: Connection, derived: readonly Derived[]): Promise<void> {
  if (derived.length === 0) return
  const wordsOf = ({ row, fields }: Derived): string => {
    const prefix = wordPrefix({ companyId: row.company_id, accountId: row.account_id }, spanOf(row.id))
    return prefix + fields!.words.join(` ${prefix}`)
  }
  await connection.query(INSERT_WORDS, [
    bigints(derived.map(({ row }) => row.company_id)),
    bigints(derived.map(({ row }) => row.account_id)),
    bigints(derived.map(({ row }) => row.id)),
    texts(derived.map(wordsOf)),
  ])
}

export async function foldResends(connection: Connection, rows: readonly ResendRow[]): Promise<void> {
  const repeats = new Repeats()
  for (const row of rows) repeats.add(row.company_id, row.event_id, { resends: 1 }, row.received_at)
  await repeats.write(connection)
}

/** How often each event was sent again, summed up: an upsert may meet a row only once. */
class Repeats {
  readonly #counts = new Map<
    number,
    { companyId: number; eventId: number; resends: number; revisions: number; lastSeenAt: number }
  >()

  add(companyId: number, eventId: number, more: { resends?: number; revisions?: number }, seenAt: number): void {
    let count = this.#counts.get(eventId)
    if (!count) {
      count = { companyId, eventId, resends: 0, revisions: 0, lastSeenAt: seenAt }
      this.#counts.set(eventId, count)
    }
    count.resends += more.resends ?? 0
    count.revisions += more.revisions ?? 0
    count.lastSeenAt = Math.max(count.lastSeenAt, seenAt)
  }

  async write(connection: Connection): Promise<void> {
    if (this.#counts.size === 0) return
    const counts = Array.from(this.#counts.values())
    await connection.query(UPSERT_REPEATS, [
      bigints(counts.map(({ companyId }) => companyId)),
      bigints(counts.map(({ eventId }) => eventId)),
      bigints(counts.map(({ resends }) => resends)),
      bigints(counts.map(({ revisions }) => revisions)),
      bigints(counts.map(({ lastSeenAt }) => lastSeenAt)),
    ])
  }
}

function keyOf(companyId: number, accountId: number, channelRef: string): string {
  return `${companyId}:${accountId}:${channelRef}`
}

/** The parser's own sentence quotes the payload, which may hold anything and may be erased one day. */
export function reasonOf(error: unknown): string {
  if (error instanceof SyntaxError) return 'the payload is not JSON'
  return storable(error instanceof Error ? error.message : String(error), MAX_REASON)
}

// Moving a database to another store: what is primary is copied row by row, what is derived is built anew.
//
// Promises
// - A frozen database takes no message, token or refusal, through whatever process: an attempt fails as `unavailable`.
//   Being frozen is part of the database and outlives every process.
// - Rows come in the order of the table's key, so that a copy goes on after the last row that was written.
// - A target remembers, in the transaction of the rows, which database they came from and how far each table is. It takes
//   rows of that database only, into an empty database only, and no server opens it before the copy is finished.

import type { StoredEvent } from '../../model/event.ts'

export type Cell = string | number | null | Uint8Array
export type CopyRow = readonly Cell[]

export type ColumnType = 'integer' | 'text' | 'bytes'

export interface CopyTable {
  readonly name: string
  readonly columns: Readonly<Record<string, ColumnType>>
  /** Unique, and what rows are read by. */
  readonly key: readonly string[]
  /** How many rows at once, at most. */
  readonly page: number
}

const QUEUE = { company_id: 'integer', account_id: 'integer', subscription: 'integer' } as const

/** What processors did. It goes along as it is, live leases too. */
const PROCESSING_TABLES: readonly CopyTable[] = [
  {
    name: 'subscriptions',
    key: ['company_id', 'account_id', 'id'],
    page: 1000,
    columns: {
      company_id: 'integer',
      account_id: 'integer',
      id: 'integer',
      name: 'text',
      created_at: 'integer',
      frontier: 'integer',
      deleted_at: 'integer',
    },
  },
  {
    name: 'deliveries',
    key: ['event_id', 'company_id', 'account_id', 'subscription'],
    page: 2000,
    columns: {
      ...QUEUE,
      event_id: 'integer',
      lane: 'integer',
      state: 'text',
      attempts: 'integer',
      available_at: 'integer',
      lease_id: 'text',
      lease_expires_at: 'integer',
      ordered: 'integer',
      key_id: 'text',
      settled_at: 'integer',
      entries: 'integer',
    },
  },
  {
    name: 'lanes',
    key: ['lane', 'company_id', 'account_id', 'subscription'],
    page: 2000,
    columns: {
      ...QUEUE,
      lane: 'integer',
      head: 'integer',
      ready_at: 'integer',
      open_at: 'integer',
      held: 'integer',
      done_count: 'integer',
      dead_count: 'integer',
    },
  },
  {
    name: 'delivery_history',
    key: ['event_id', 'company_id', 'account_id', 'subscription', 'number'],
    page: 1000,
    columns: {
      ...QUEUE,
      event_id: 'integer',
      number: 'integer',
      at: 'integer',
      what: 'text',
      state: 'text',
      attempts: 'integer',
      key_id: 'text',
      error: 'text',
    },
  },
]

/** Who may sign in, and what they did. Sessions and links end with the database they were made on. */
const OPERATOR_TABLES: readonly CopyTable[] = [
  {
    name: 'operators',
    key: ['id'],
    page: 1000,
    columns: {
      id: 'text',
      name: 'text',
      role: 'text',
      tenants: 'text',
      password: 'text',
      created_at: 'integer',
      disabled_at: 'integer',
    },
  },
  {
    name: 'audit',
    key: ['id'],
    page: 1000,
    columns: {
      id: 'text',
      at: 'integer',
      operator_id: 'text',
      operator: 'text',
      action: 'text',
      company_id: 'integer',
      account_id: 'integer',
      target: 'text',
      request_id: 'text',
      address: 'text',
    },
  },
]

/** Where no column says how large a row is, the page is small. */
export const COPY_TABLES: readonly CopyTable[] = [
  {
    name: 'tokens',
    key: ['created_at', 'key_id'],
    page: 1000,
    columns: {
      key_id: 'text',
      hash: 'bytes',
      account_id: 'integer',
      company_id: 'integer',
      scope: 'text',
      label: 'text',
      is_active: 'integer',
      expires_at: 'integer',
      created_at: 'integer',
      disabled_at: 'integer',
      last_used_at: 'integer',
      rotated_from: 'text',
      rate_limit: 'text',
      generation: 'integer',
    },
  },
  {
    name: 'dedupe',
    key: ['company_id', 'digest'],
    page: 2000,
    columns: {
      company_id: 'integer',
      digest: 'bytes',
      event_id: 'integer',
      sha256: 'bytes',
      minted_key: 'bytes',
    },
  },
  {
    name: 'events',
    key: ['id'],
    page: 1000,
    columns: {
      id: 'integer',
      kind: 'text',
      revises: 'integer',
      account_id: 'integer',
      company_id: 'integer',
      received_at: 'integer',
      key_id: 'text',
      scope: 'text',
      route: 'text',
      source_ref: 'text',
      channel_ref: 'text',
      idempotency_key: 'text',
      content_type: 'text',
      size: 'integer',
      sha256: 'bytes',
      erased_at: 'integer',
      origin: 'text',
      request_id: 'text',
      traceparent: 'text',
      user_agent: 'text',
      remote_addr: 'text',
      payload: 'bytes',
    },
  },
  {
    name: 'resends',
    key: ['id'],
    page: 2000,
    columns: {
      id: 'integer',
      company_id: 'integer',
      event_id: 'integer',
      received_at: 'integer',
      key_id: 'text',
      request_id: 'text',
    },
  },
  {
    name: 'refusals',
    key: ['company_id', 'account_id', 'id'],
    page: 100,
    columns: {
      id: 'integer',
      account_id: 'integer',
      company_id: 'integer',
      received_at: 'integer',
      key_id: 'text',
      code: 'text',
      route: 'text',
      request_id: 'text',
      headers: 'text',
      body_size: 'integer',
      body: 'bytes',
      accepted_as: 'integer',
      accepted_at: 'integer',
      accepted_by: 'text',
    },
  },
  ...PROCESSING_TABLES,
  ...OPERATOR_TABLES,
]

/** Bytes of payload in one page: a page holds fewer rows where rows are large, and at least one. */
export const COPY_PAGE_BYTES = 8 * 1024 * 1024

/** What a database is besides its rows. */
export interface CopyIdentity {
  readonly databaseUuid: string
  /** The key of the dedupe digests: without it, the same message would be another one in the copy. */
  readonly dedupeKey: Uint8Array
  /** The last id given out in each sequence: none is ever used again, in the copy either. */
  readonly lastIds: Readonly<Record<CopySequence, number>>
}

export type CopySequence = 'events' | 'resends' | 'refusals'

/** How far a target is: the key of the last row of each table that was begun. */
export interface CopyState {
  readonly sourceUuid: string
  readonly finished: boolean
  readonly positions: Readonly<Record<string, CopyRow | null>>
}

/** A message on its way to the tables. */
export interface Arrival {
  readonly event: StoredEvent
  readonly payload: Uint8Array
  /** What its dedupe key will be; null if that is in its table already. */
  readonly digest: Uint8Array | null
}

/** One database, as either side of a copy. */
export interface CopySide {
  readonly tables: readonly CopyTable[]
  identity(): Promise<CopyIdentity>
  /** The rows after a key (null: from the first), in the order of the key. None: there are no more. */
  read(table: CopyTable, after: CopyRow | null): Promise<CopyRow[]>
  count(table: CopyTable): Promise<number>
  /** Every event up to this id is in its table; behind it, some may not be yet. */
  filedThrough(): Promise<number>
  /** Rows of `dedupe`, of the newest of those events, of which some may not be there yet. None behind `freeze`. */
  unsortedKeys(): Iterable<CopyRow>
  /** Messages behind those, as far as they are not in their tables yet. None behind `freeze`. */
  arrivals(): Iterable<Arrival> | AsyncIterable<Arrival>

  /** Refuses if writers do not let go of the tables in a while. */
  freeze(): Promise<void>
  isFrozen(): Promise<boolean>
  release(): Promise<void>

  /** What it is a copy of; null if it is none. */
  state(): Promise<CopyState | null>
  /** Refuses a database that holds anything but a copy of this source, or that a server is using. */
  begin(sourceUuid: string): Promise<CopyState>
  /** The rows after a key, and that the table is copied up to the last of them. Refused if another copy is at work here. */
  write(sourceUuid: string, table: CopyTable, after: CopyRow | null, rows: readonly CopyRow[]): Promise<void>
  /** Takes over what is not in rows, and opens the database to servers. */
  finish(source: CopyIdentity): Promise<void>
  close(): Promise<void>
}

/** Why no server may open a database like this; null if nothing speaks against it. */
export function servingProblem(state: CopyState | null, isFrozen: boolean): string | null {
  if (state && !state.finished) {
    return (
      'The database is the target of a copy that is not finished. ' +
      'Run the same ./intray copy again: it goes on where it stopped.'
    )
  }
  if (!isFrozen) return null
  return (
    'The database was copied to another one and is frozen. Use the copy, ' +
    'or take this one back into service: ./intray copy --release <its URL>.'
  )
}

/** The state after these rows were written. Throws a sentence if they do not follow on what is there. */
export function stateAfter(
  state: CopyState | null,
  sourceUuid: string,
  table: CopyTable,
  after: CopyRow | null,
  rows: readonly CopyRow[],
): CopyState {
  const before = { sourceUuid, finished: false, positions: { [table.name]: after } }
  const found = { ...state, positions: { [table.name]: state?.positions[table.name] ?? null } } as typeof before
  if (encodeState(found) !== encodeState(before)) throw new Error('Another copy into this database is running.')
  const last = rows.at(-1)
  return { ...state!, positions: { ...state!.positions, ...(last && { [table.name]: keyOf(table, last) }) } }
}

export function keyOf(table: CopyTable, row: CopyRow): CopyRow {
  const names = Object.keys(table.columns)
  return table.key.map((column) => row[names.indexOf(column)] ?? null)
}

/** As text, for the state that a target keeps. */
export function encodeState({ sourceUuid, finished, positions }: CopyState): string {
  const encoded = Object.entries(positions).map(([table, key]) => [table, key?.map(encodeCell) ?? null])
  return JSON.stringify({ sourceUuid, finished, positions: Object.fromEntries(encoded) })
}

export function decodeState(text: string): CopyState {
  return JSON.parse(text, (_, value: { hex?: unknown } | null) =>
    typeof value?.hex === 'string' ? Buffer.from(value.hex, 'hex') : value,
  ) as CopyState
}

function encodeCell(cell: Cell): unknown {
  return cell instanceof Uint8Array ? { hex: Buffer.from(cell).toString('hex') } : cell
}

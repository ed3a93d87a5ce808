// Copies every row that can be read of a damaged database into a new one, and names the rest.
//
// A message that is lost takes its dedupe key with it, so that its sender can send it again. A dedupe key that is lost is made
// again from its message, so that a re-send is still a duplicate.

import { createDedupeDigest, createMintedDigest } from '../../model/dedupe.ts'
import type { Tenant } from '../../model/principal.ts'
import { newUuid } from '../../runtime/id.ts'
import { type Cell, type CopyRow, type CopySide, type CopyTable, keyOf } from '../../store/contract/copy.ts'
import { StoreFailure } from '../../store/contract/failure.ts'
import { describeRange, idsOf, type KeyRange, shownCell } from './key-range.ts'
import { readAround } from './read-around.ts'

export interface SalvagedTable {
  readonly table: string
  readonly rows: number
  /** Such as `id 12 to 17`. */
  readonly missing: readonly string[]
}

export interface Salvaged {
  readonly tables: readonly SalvagedTable[]
  /** Messages whose rows are lost, as far as their dedupe keys tell. */
  readonly lostMessages: readonly number[]
  /** Dedupe keys that were made again. */
  readonly keysMade: number
}

/** Tables that an index other than that of their own rows would be read in order of. */
const KEYS: Readonly<Record<string, readonly string[]>> = { tokens: ['key_id'], refusals: ['id'] }

/** Events before their dedupe keys. */
const isLater = ({ name }: CopyTable): number => (name === 'dedupe' ? 1 : 0)

export async function salvageTables(
  source: CopySide,
  target: CopySide,
  say: (text: string) => void,
): Promise<Salvaged> {
  const identity = await source.identity()
  await target.begin(identity.databaseUuid)
  await target.restart(identity, newUuid())
  const tables: SalvagedTable[] = []
  const lostIds: { readonly first: number; readonly last: number }[] = []
  const lostMessages: number[] = []
  const isLost = (id: number) => lostIds.some(({ first, last }) => id >= first && id <= last)
  let keysMade = 0

  for (const listed of source.tables.toSorted((a, b) => isLater(a) - isLater(b))) {
    const table = { ...listed, key: KEYS[listed.name] ?? listed.key }
    const writer = new Writer(target, table, identity.databaseUuid)
    const missing: string[] = []
    const onLost = (range: KeyRange) => {
      missing.push(describeRange(table, range))
      const ids = table.name === 'events' ? idsOf(table, range) : null
      if (ids) lostIds.push(ids)
    }
    const lastId = identity.lastIds[table.name as keyof typeof identity.lastIds]
    const end = lastId === undefined ? {} : { end: lastId + 1 }
    const eventId = Object.keys(table.columns).indexOf('event_id')
    for await (const page of readAround(source, table, { onLost, ...end })) {
      const isKept = (row: CopyRow) => table.name !== 'dedupe' || !isLost(row[eventId] as number)
      lostMessages.push(...page.filter((row) => !isKept(row)).map((row) => row[eventId] as number))
      await writer.write(page.filter(isKept))
      say(`${table.name} ${writer.rows}`)
    }
    missing.push(...writer.refused)
    // A page that was replaced by an older one misses keys, and no database says so.
    if (table.name === 'dedupe') {
      const made = await missingKeys(target, identity.dedupeKey)
      await writer.write(made)
      keysMade = made.length
    }
    tables.push({ table: table.name, rows: writer.rows, missing })
  }
  await target.setWhole(identity.databaseUuid)
  await target.finish(identity)
  return { tables, lostMessages: lostMessages.toSorted((a, b) => a - b), keysMade }
}

class Writer {
  rows = 0
  /** Rows that the target does not take, since a damaged page holds values that make no sense. */
  readonly refused: string[] = []
  readonly #target: CopySide
  readonly #table: CopyTable
  readonly #sourceUuid: string
  #position: CopyRow | null = null

  constructor(target: CopySide, table: CopyTable, sourceUuid: string) {
    this.#target = target
    this.#table = table
    this.#sourceUuid = sourceUuid
  }

  async write(rows: readonly CopyRow[]): Promise<void> {
    const last = rows.at(-1)
    if (!last) return
    try {
      await this.#target.write(this.#sourceUuid, this.#table, this.#position, rows)
      this.#position = keyOf(this.#table, last)
      this.rows += rows.length
    } catch (error) {
      if (!(error instanceof StoreFailure) || error.kind !== 'rejected') throw error
      if (rows.length > 1) for (const row of rows) await this.write([row])
      else
        this.refused.push(
          `${this.#table.key.join(', ')} ${keyOf(this.#table, last).map(shownCell).join(', ')} (its values make no sense)`,
        )
    }
  }
}

/** Dedupe keys for the events of a database that have none. */
async function missingKeys(side: CopySide, dedupeKey: Uint8Array): Promise<CopyRow[]> {
  const keyed = new Set<number>()
  for await (const row of rowsOf(side, 'dedupe')) keyed.add(row.event_id as number)
  const erased = new Map<number, Cell>()
  for await (const row of rowsOf(side, 'erasures')) erased.set(row.event_id as number, row.digest!)
  const digestOf = createDedupeDigest(dedupeKey)
  const mintedDigest = createMintedDigest()
  const made: CopyRow[] = []
  for await (const row of rowsOf(side, 'events')) {
    // A message under a reference whose first event was purged has no key of its own.
    if (row.kind !== 'event' || row.revises !== null || keyed.has(row.id as number)) continue
    const tenant: Tenant = { accountId: row.account_id as number, companyId: row.company_id as number }
    const ref = (row.source_ref ?? row.idempotency_key) as string | null
    const minted = Buffer.from(mintedDigest(newUuid()))
    const known =
      ref === null ? erased.get(row.id as number) : digestOf(tenant, row.source_ref === null ? 'key' : 'ref', ref)
    const digest = known ? Buffer.from(known as Uint8Array) : minted
    made.push([tenant.companyId, digest, row.id!, known ? row.sha256! : Buffer.alloc(0), minted])
  }
  return made
}

async function* rowsOf(side: CopySide, name: string): AsyncGenerator<Record<string, Cell>> {
  const table = side.tables.find((one) => one.name === name)!
  const columns = Object.keys(table.columns)
  for (let after: CopyRow | null = null; ; ) {
    const page: CopyRow[] = await side.read(table, after)
    const last = page.at(-1)
    if (!last) return
    for (const row of page) yield Object.fromEntries(row.map((cell, at) => [columns[at]!, cell]))
    after = keyOf(table, last)
  }
}

// Moves one tenant into a database that has others: `./intray copy --tenant`. Its rows get ids of the target, in the order of the old
// ones; everything that names an event follows. The tenant is closed meanwhile, and stays closed in the source.

import { waitUntilInEffect } from '../auth/token-lifecycle.ts'
import { type Tenant, tenantText } from '../model/principal.ts'
import { type CopyRow, type CopyTable, keyOf } from '../store/contract/copy.ts'
import type { Store } from '../store/contract/store.ts'
import type { MovedIds, MoveSide } from '../store/contract/tenant-move.ts'
import { CommandError } from './command.ts'
import { digestOf } from './copy-digest.ts'
import { inSteps } from './output.ts'

/** How long servers of the source may take to refuse the tenant's tokens. */
const IN_EFFECT_MS = 30_000

/** Columns that name an event. */
const EVENT_IDS: Readonly<Record<string, readonly string[]>> = {
  events: ['revises'],
  dedupe: ['event_id'],
  resends: ['event_id'],
  erasures: ['event_id'],
  refusals: ['accepted_as'],
  subscriptions: [],
  deliveries: ['event_id', 'lane'],
  lanes: ['lane', 'head'],
  delivery_history: ['event_id'],
}

/** Tables whose rows have ids of their own. */
const NUMBERED = new Set(['events', 'resends', 'erasures', 'refusals'])
/** Whose rows name a company only: its other accounts stay. */
const OF_COMPANY = new Set(['dedupe', 'resends'])

export interface TenantCopyOptions {
  readonly tenant: Tenant
  /** What the source tells the tenant's senders. */
  readonly address: string | null
  readonly source: MoveSide
  /** The store of the source: which servers run on it, and what is in effect there. */
  readonly sourceStore: Pick<Store, 'tokens' | 'nodes'>
  readonly target: MoveSide
}

export interface TenantCopyReport {
  readonly tables: readonly { readonly table: string; readonly rows: number }[]
}

export async function copyTenant(options: TenantCopyOptions): Promise<TenantCopyReport> {
  const { source, target, tenant, address, sourceStore } = options
  const [from, to] = [await source.identity(), await target.identity()]
  if (from.databaseUuid === to.databaseUuid) {
    throw new CommandError('--from and --to are the same database. Give another --to.')
  }
  if (!Buffer.from(from.dedupeKey).equals(to.dedupeKey)) {
    throw new CommandError(
      'The two databases have different dedupe keys: a message that is sent again would be stored again. A tenant moves between ' +
        'databases of one key only: ./intray init --key-from URL makes a new one with the key of another.',
    )
  }
  const moved = await target.tenants.begin(tenant, from.databaseUuid, from.lastIds.events)
  const wasClosed = await source.tenants.isClosed(tenant)
  await source.tenants.close(tenant, address)
  let finish: () => Promise<TenantCopyReport>
  try {
    if (!(await waitUntilInEffect(sourceStore, IN_EFFECT_MS))) {
      throw new CommandError(
        'A server of the source does not take over that the tenant is closed. Look at its log, and run this again.',
      )
    }
    const copy = new TenantCopy(options, moved)
    await copy.copyRows()
    finish = () => copy.finish()
  } catch (error) {
    if (!wasClosed) await source.tenants.reopen(tenant)
    throw error
  }
  // If this fails, the target may have the tenant: the source stays closed.
  return finish()
}

class TenantCopy {
  readonly #options: TenantCopyOptions
  readonly #moved: Map<string, MovedIds>
  readonly #oldEvents: number[]
  readonly #rows = new Map<string, number>()

  constructor(options: TenantCopyOptions, moved: ReadonlyMap<string, MovedIds>) {
    this.#options = options
    this.#moved = new Map(moved)
    this.#oldEvents = [...this.#idsOf('events').keys()].sort((a, b) => a - b)
  }

  async copyRows(): Promise<void> {
    const { source } = this.#options
    const tables = Object.keys(EVENT_IDS).map((name) => source.tables.find((table) => table.name === name)!)
    for (const table of tables) await inSteps('copy', (say) => this.#copyTable(table, say))
  }

  async finish(): Promise<TenantCopyReport> {
    const { source, target, tenant } = this.#options
    const tokens = await this.#readAll(source.tables.find(({ name }) => name === 'tokens')!)
    await target.tenants.finish(tenant, tokens)
    this.#rows.set('tokens', tokens.length)
    return { tables: Array.from(this.#rows, ([table, rows]) => ({ table, rows })) }
  }

  async #readAll(table: CopyTable): Promise<CopyRow[]> {
    const rows: CopyRow[] = []
    for (let after: CopyRow | null = null; ; ) {
      const page: CopyRow[] = await this.#options.source.read(table, after, { tenant: this.#options.tenant })
      const last = page.at(-1)
      if (!last) return rows
      rows.push(...page)
      after = keyOf(table, last)
    }
  }

  async #copyTable(table: CopyTable, say: (text: string) => void): Promise<void> {
    const { source, tenant } = this.#options
    let done = 0
    say(`${table.name} of ${tenantText(tenant)}`)
    for (let after: CopyRow | null = null; ; ) {
      const page: CopyRow[] = await source.read(table, after, { tenant })
      const last = page.at(-1)
      if (!last) break
      const own = OF_COMPANY.has(table.name) ? await this.#ownRows(table, page) : page
      await this.#copyRows(table, own)
      after = keyOf(table, last)
      done += own.length
      say(`${table.name} ${done}`)
    }
    this.#rows.set(table.name, done)
  }

  /** A key of an event that is gone goes along: its digest is of one tenant, whichever it is. */
  async #ownRows(table: CopyTable, page: readonly CopyRow[]): Promise<CopyRow[]> {
    const at = columnOf(table, 'event_id')
    const moved = this.#idsOf('events')
    const others = [...new Set(page.map((row) => row[at] as number).filter((id) => !moved.has(id)))]
    const events = this.#options.source.tables.find(({ name }) => name === 'events')!
    const found = await this.#options.source.find(
      events,
      others.map((id) => [id]),
    )
    const ofOthers = new Set(others.filter((_, n) => found[n] !== null))
    return page.filter((row) => !ofOthers.has(row[at] as number))
  }

  async #copyRows(table: CopyTable, rows: readonly CopyRow[]): Promise<void> {
    const { target } = this.#options
    await this.#numberMissing(table, rows)
    if (!NUMBERED.has(table.name)) {
      const translated = rows.map((row) => this.#translate(table, row, null))
      await target.tenants.put(table, translated)
      await this.#compare(table, translated)
      return
    }
    const idAt = columnOf(table, 'id')
    const ids = this.#idsOf(table.name)
    const isKnown = (row: CopyRow) => ids.has(row[idAt] as number)
    const known = rows.filter(isKnown)
    const fresh = rows.filter((row) => !isKnown(row))
    if (known.length > 0)
      await target.tenants.put(
        table,
        known.map((row) => this.#translate(table, row, idAt)),
      )
    if (fresh.length > 0) {
      const oldIds = fresh.map((row) => row[idAt] as number)
      // A revision may revise an event of its own page, so all ids are known before a row is translated.
      await target.tenants.insertNumbered(table, oldIds, (newIds) => {
        for (const [n, old] of oldIds.entries()) this.#note(table.name, old, newIds[n]!)
        return fresh.map((row) => this.#translate(table, row, idAt))
      })
    }
    await this.#compare(
      table,
      rows.map((row) => this.#translate(table, row, idAt)),
    )
  }

  /** Ids of events that are gone: their keys and lanes live on under new ids that no event has. */
  async #numberMissing(table: CopyTable, rows: readonly CopyRow[]): Promise<void> {
    if (table.name === 'events') return
    const places = EVENT_IDS[table.name]!.map((column) => columnOf(table, column))
    const named = rows.flatMap((row) => places.map((at) => row[at])).filter((id) => typeof id === 'number')
    const missing = [...new Set(named)].filter((id) => !this.#idsOf('events').has(id)).sort((a, b) => a - b)
    if (missing.length === 0) return
    const events = this.#options.source.tables.find(({ name }) => name === 'events')!
    const ids = await this.#options.target.tenants.insertNumbered(events, missing, () => [])
    for (const [n, old] of missing.entries()) this.#idsOf('events').set(old, ids[n]!)
  }

  #translate(table: CopyTable, row: CopyRow, idAt: number | null): CopyRow {
    const events = this.#idsOf('events')
    const cells = [...row]
    for (const column of EVENT_IDS[table.name]!) {
      const at = columnOf(table, column)
      const old = cells[at]
      if (typeof old === 'number') cells[at] = events.get(old) ?? null
    }
    if (idAt !== null) cells[idAt] = this.#idsOf(table.name).get(cells[idAt] as number)!
    if (table.name === 'subscriptions') {
      const at = columnOf(table, 'enqueued_up_to')
      cells[at] = this.#lastIdUpTo(cells[at] as number)
    }
    return cells
  }

  /** The new id of the newest event up to an old id; 0 if there is none. */
  #lastIdUpTo(old: number): number {
    const found = this.#oldEvents.findLast((id) => id <= old)
    return found === undefined ? 0 : this.#idsOf('events').get(found)!
  }

  #note(table: string, old: number, id: number): void {
    this.#idsOf(table).set(old, id)
    if (table === 'events') this.#oldEvents.push(old)
  }

  #idsOf(table: string): MovedIds {
    const known = this.#moved.get(table)
    if (known) return known
    const ids: MovedIds = new Map()
    this.#moved.set(table, ids)
    return ids
  }

  async #compare(table: CopyTable, rows: readonly CopyRow[]): Promise<void> {
    const written = await this.#options.target.find(
      table,
      rows.map((row) => keyOf(table, row)),
    )
    if (digestOf(written) === digestOf(rows)) return
    throw new CommandError(
      `The copy differs from its source in ${table.name}: rows that were just written have another content. ` +
        'Check the disk and the memory of the target, and run this again.',
    )
  }
}

function columnOf(table: CopyTable, name: string): number {
  return Object.keys(table.columns).indexOf(name)
}

// Moves one tenant into a database that has others: `./intray copy --tenant`. Its rows get ids of the target, in the order of the old
// ones; everything that names an event follows. The tenant is closed while its rows are copied, and stays closed in the source.

import { waitUntilInEffect } from '../../auth/token-lifecycle.ts'
import { type Tenant, tenantText } from '../../model/principal.ts'
import { type CopyRow, type CopyTable, keyOf, type ReadRange } from '../../store/contract/copy.ts'
import type { Store } from '../../store/contract/store.ts'
import type { MoveSide, SurveyedTable } from '../../store/contract/tenant-move.ts'
import { CommandError } from '../command.ts'
import { digestOf } from './copy-digest.ts'
import { inSteps } from '../output.ts'

/** How long servers of the source may take to refuse the tenant's tokens. */
const IN_EFFECT_MS = 30_000
/** Events whose deliveries are looked up at a time. */
const EVENTS = 500

/**
 * Columns that name an event, of the tables in the order in which they are copied: before events come what must be known when they are
 * indexed or purged in the target.
 */
const EVENT_IDS: Readonly<Record<string, readonly string[]>> = {
  retention_rules: [],
  conversation_ids: ['id'],
  recipes: [],
  hooks: [],
  events: ['revises'],
  dedupe: ['event_id'],
  resends: ['event_id'],
  refusals: ['accepted_as'],
  subscriptions: [],
  endpoints: [],
  deliveries: ['event_id', 'lane'],
  lanes: ['lane', 'head'],
  delivery_history: ['event_id'],
  // Last, so that nearly all that operators erase meanwhile is among them.
  erasures: ['event_id'],
}

/** Tables whose rows have ids of their own. */
const NUMBERED = new Set(['events', 'resends', 'erasures', 'refusals'])
/** Rows are found by ids that a survey found. */
const SURVEYED: readonly SurveyedTable[] = ['events', 'resends']
/** Rows are found by their event, with which the key begins. */
const OF_EVENTS = new Set(['deliveries', 'lanes', 'delivery_history'])

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
  /** From the closing of the tenant to its opening in the target. */
  readonly closedMs: number
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
  const stateBefore = await source.tenants.state(tenant)
  if (stateBefore === null) throw new CommandError('The source has no such tenant: no token of it was ever made.')
  const start = await target.tenants.begin(tenant, from.databaseUuid, from.lastIds.events)
  const copy = new TenantCopy(options)
  await copy.survey(await source.watermark())
  const closedAt = performance.now()
  await source.tenants.close(tenant, address)
  let finish: () => Promise<void>
  try {
    if (!(await waitUntilInEffect(sourceStore, IN_EFFECT_MS))) {
      throw new CommandError(
        'A server of the source does not take over that the tenant is closed. Look at its log, and run this again.',
      )
    }
    await source.tenants.seal(tenant)
    const { lastIds } = await source.identity()
    if (lastIds.events >= start) {
      throw new CommandError(
        'The source has given out ids that the target needs, since this move was begun. Move the tenant into another database.',
      )
    }
    await copy.survey(lastIds)
    await copy.copyRows()
    finish = () => copy.finish()
  } catch (error) {
    if (stateBefore === 'open') await source.tenants.reopen(tenant)
    throw error
  }
  // If this fails, the target may have the tenant: the source stays closed.
  await finish()
  return { tables: copy.tables, closedMs: Math.round(performance.now() - closedAt) }
}

class TenantCopy {
  readonly #options: TenantCopyOptions
  readonly #rows = new Map<string, number>()

  constructor(options: TenantCopyOptions) {
    this.#options = options
  }

  get tables(): TenantCopyReport['tables'] {
    return Array.from(this.#rows, ([table, rows]) => ({ table, rows }))
  }

  /** Looks for the tenant's ids among all that follow those it has found. */
  async survey(upTo: Readonly<Record<SurveyedTable, number>>): Promise<void> {
    const { source, target, tenant } = this.#options
    for (const table of SURVEYED) {
      await inSteps('survey', async (say) => {
        for (let after = await target.tenants.lastNoted(tenant, table); ; ) {
          const { ids, last } = await source.tenants.survey(tenant, table, after, upTo[table])
          if (ids.length > 0) await target.tenants.noteIds(tenant, table, ids)
          if (last === null) return
          after = last
          say(`${table} up to ${last} of ${upTo[table]}`)
        }
      })
    }
  }

  async copyRows(): Promise<void> {
    for (const name of Object.keys(EVENT_IDS)) {
      const table = this.#table(name)
      await inSteps('copy', async (say) => {
        let done = 0
        say(`${name} of ${tenantText(this.#options.tenant)}`)
        for await (const page of this.#pages(table)) {
          const own = await this.#ownRows(table, page)
          await this.#copyPage(table, own)
          if (name === 'erasures') await this.#copyErased(table, own)
          done += own.length
          say(`${name} ${done}`)
        }
        this.#rows.set(name, done)
      })
    }
  }

  async finish(): Promise<void> {
    const { target, tenant } = this.#options
    const tokens: CopyRow[] = []
    for await (const page of this.#read(this.#table('tokens'), { tenant })) tokens.push(...page)
    await target.tenants.finish(tenant, tokens)
    this.#rows.set('tokens', tokens.length)
  }

  async *#pages(table: CopyTable): AsyncGenerator<CopyRow[]> {
    const { tenant } = this.#options
    if (SURVEYED.some((name) => name === table.name)) {
      for await (const values of this.#noted(table.name as SurveyedTable, table.page)) {
        yield* this.#read(table, { tenant, of: { column: 'id', values } })
      }
    } else if (OF_EVENTS.has(table.name)) {
      for (const kind of ['events', 'gone'] as const) {
        for await (const values of this.#noted(kind, EVENTS)) {
          yield* this.#read(table, { tenant, of: { column: table.key[0]!, values } })
        }
      }
    } else yield* this.#read(table, { tenant })
  }

  async *#noted(kind: SurveyedTable | 'gone', limit: number): AsyncGenerator<number[]> {
    const { target, tenant } = this.#options
    for (let after = 0; ; ) {
      const ids = await target.tenants.noted(tenant, kind, after, limit)
      if (ids.length === 0) return
      yield ids
      after = ids.at(-1)!
    }
  }

  async *#read(table: CopyTable, range: ReadRange): AsyncGenerator<CopyRow[]> {
    for (let after: CopyRow | null = null; ; ) {
      const page: CopyRow[] = await this.#options.source.read(table, after, range)
      const last = page.at(-1)
      if (!last) return
      yield page
      after = keyOf(table, last)
    }
  }

  #ownRows(table: CopyTable, page: readonly CopyRow[]): Promise<readonly CopyRow[]> {
    if (table.name === 'dedupe') return this.#ownKeys(table, page)
    if (table.name === 'conversation_ids') return this.#headless(table, page)
    return Promise.resolve(page)
  }

  /** Conversations whose first event is gone. The others have the id of their first event, here as there. */
  async #headless(table: CopyTable, page: readonly CopyRow[]): Promise<CopyRow[]> {
    const at = columnOf(table, 'id')
    const found = await this.#options.source.find(
      this.#table('events'),
      page.map((row) => [row[at]!]),
    )
    return page.filter((_, n) => found[n] === null)
  }

  /**
   * Keys of a company name no account. One of an event that is gone goes along: its digest is of one tenant, whichever it is.
   */
  async #ownKeys(table: CopyTable, page: readonly CopyRow[]): Promise<CopyRow[]> {
    const { source, target, tenant } = this.#options
    const at = columnOf(table, 'event_id')
    const moved = await target.tenants.newIds(
      tenant,
      'events',
      page.map((row) => row[at] as number),
    )
    const others = [...new Set(page.map((row) => row[at] as number).filter((id) => !moved.has(id)))]
    const events = this.#table('events')
    const accountAt = columnOf(events, 'account_id')
    const found = await source.find(
      events,
      others.map((id) => [id]),
    )
    if (found.some((event) => event?.[accountAt] === tenant.accountId)) {
      throw new CommandError(
        'An event of the tenant was not found among all events. Look at ./intray doctor of the source.',
      )
    }
    const ofOthers = new Set(others.filter((_, n) => found[n] !== null))
    return page.filter((row) => !ofOthers.has(row[at] as number))
  }

  /** An event may have been erased after it and its key were copied. */
  async #copyErased(table: CopyTable, rows: readonly CopyRow[]): Promise<void> {
    const { source, tenant } = this.#options
    const values = rows.map((row) => row[columnOf(table, 'event_id')] as number)
    const digests = rows.map((row) => row[columnOf(table, 'digest')]!).filter((digest) => digest !== null)
    const keys = await source.find(
      this.#table('dedupe'),
      digests.map((digest) => [tenant.companyId, digest]),
    )
    await this.#copyPage(
      this.#table('dedupe'),
      keys.filter((key) => key !== null),
    )
    for await (const page of this.#read(this.#table('events'), { tenant, of: { column: 'id', values } })) {
      await this.#copyPage(this.#table('events'), page)
    }
  }

  async #copyPage(table: CopyTable, rows: readonly CopyRow[]): Promise<void> {
    const { target, tenant } = this.#options
    if (rows.length === 0) return
    const idAt = NUMBERED.has(table.name) ? columnOf(table, 'id') : null
    const oldIds = idAt === null ? [] : rows.map((row) => row[idAt] as number)
    const known = await target.tenants.newIds(tenant, table.name, oldIds)
    const fresh = oldIds.filter((id) => !known.has(id))
    const events = await this.#newEventIds(table, rows, fresh)
    const translate = (own: ReadonlyMap<number, number>) => (row: CopyRow) => this.#translate(table, row, own, events)
    const present = idAt === null ? rows : rows.filter((row) => known.has(row[idAt] as number))
    if (present.length > 0) await target.tenants.put(table, present.map(translate(known)))
    const ids = new Map(known)
    if (fresh.length > 0 && idAt !== null) {
      const isFresh = new Set(fresh)
      await target.tenants.insertNumbered(tenant, table, fresh, (drawn) => {
        for (const [old, id] of drawn) ids.set(old, id)
        // A revision may revise an event of its own page.
        if (table.name === 'events') for (const [old, id] of drawn) events.set(old, id)
        return rows.filter((row) => isFresh.has(row[idAt] as number)).map(translate(ids))
      })
    }
    await this.#compare(table, rows.map(translate(ids)))
  }

  /**
   * New ids of the events that rows name. Those of events that are gone are drawn here: their keys and lanes live on under ids that no
   * event has. `ownFresh`: events of the page itself, which get theirs later.
   */
  async #newEventIds(
    table: CopyTable,
    rows: readonly CopyRow[],
    ownFresh: readonly number[],
  ): Promise<Map<number, number>> {
    const { target, tenant } = this.#options
    const places = EVENT_IDS[table.name]!.map((column) => columnOf(table, column))
    const cells = rows.flatMap((row) => places.map((at) => row[at])).filter((id) => typeof id === 'number')
    const named = [...new Set(cells)].sort((a, b) => a - b)
    const found = new Map(await target.tenants.newIds(tenant, 'events', named))
    const later = new Set(table.name === 'events' ? ownFresh : [])
    const gone = named.filter((id) => !found.has(id) && !later.has(id))
    if (gone.length > 0) {
      await target.tenants.numberGone(tenant, gone)
      for (const [old, id] of await target.tenants.newIds(tenant, 'events', gone)) found.set(old, id)
    }
    if (table.name === 'subscriptions') {
      for (const old of new Set(rows.map((row) => row[columnOf(table, 'enqueued_up_to')] as number))) {
        found.set(old, await target.tenants.newestUpTo(tenant, old))
      }
    }
    return found
  }

  #translate(
    table: CopyTable,
    row: CopyRow,
    own: ReadonlyMap<number, number>,
    events: ReadonlyMap<number, number>,
  ): CopyRow {
    const cells = [...row]
    const replace = (column: string, ids: ReadonlyMap<number, number>) => {
      const at = columnOf(table, column)
      if (typeof cells[at] === 'number') cells[at] = ids.get(cells[at])!
    }
    for (const column of EVENT_IDS[table.name]!) replace(column, events)
    if (NUMBERED.has(table.name)) replace('id', own)
    if (table.name === 'subscriptions') replace('enqueued_up_to', events)
    return cells
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

  #table(name: string): CopyTable {
    return this.#options.source.tables.find((table) => table.name === name)!
  }
}

function columnOf(table: CopyTable, name: string): number {
  return Object.keys(table.columns).indexOf(name)
}

// Imports the rows of an export, in their order, through the append of the store: as events, or as revisions of what has their
// reference. A row that the database holds is passed over, so an import that was interrupted is repeated from the start, and
// stores nothing twice.
//
// Two imports of one file at once store nothing twice either; a revision that both bring is then counted as sent again.

import { isSameTenant, type Tenant } from '../model/principal.ts'
import type { Appender } from '../store/contract/append.ts'
import type { EventReader } from '../store/contract/events.ts'
import type { HookStore } from '../store/contract/hooks.ts'
import type { Held, ImportedItem, TransferStore } from '../store/contract/transfer.ts'
import { customDigest } from '../model/recipes/recipe.ts'
import type { ReadRow } from './export-row.ts'
import { createImportKeys, type ImportKeys } from './import-keys.ts'
import { Promotions } from './promotions.ts'

const BATCH_ROWS = 200
const BATCH_BYTES = 2 * 1024 * 1024
const MAX_FAILURES = 20

export interface ImportOptions {
  readonly store: {
    readonly journal: Appender
    readonly facts: Readonly<Record<string, string | number>>
    readonly events: Pick<EventReader, 'find' | 'revisions'>
    readonly transfer: Pick<TransferStore, 'held'>
    readonly hooks: Pick<HookStore, 'keepRecipe'>
  }
  /** The database that the rows come from. */
  readonly sourceUuid: string
  /** Where all rows go; null: each to its own tenant. */
  readonly into: Tenant | null
  /** Revisions, by their ids in the source, that rows were promoted from. */
  readonly promoted: ReadonlySet<number>
  /** After each batch. */
  readonly onBatch: (lastId: number, counts: ImportCounts) => Promise<void> | void
}

export interface ImportCounts {
  readonly events: number
  readonly revisions: number
  /** The database held them. */
  readonly present: number
  /** The database had erased them. */
  readonly erasedHere: number
  /** They have no content: erased in the source. */
  readonly erasedThere: number
  /** They have no content: damaged in the source. */
  readonly damaged: number
  readonly failed: number
}

export interface ImportFailure {
  readonly id: number
  readonly reason: string
}

export interface ImportResult {
  readonly counts: ImportCounts
  /** The first of them. */
  readonly failures: readonly ImportFailure[]
}

export async function importRows(rows: AsyncIterable<ReadRow>, options: ImportOptions): Promise<ImportResult> {
  const work = new Import(options)
  for await (const row of rows) await work.add(row)
  return work.end()
}

interface Waiting {
  readonly row: ReadRow
  readonly item: ImportedItem
}

class Import {
  readonly #options: ImportOptions
  readonly #keys: ImportKeys
  readonly #promotions: Promotions
  /** The rows come from this database. */
  readonly #isOwn: boolean
  readonly #counts = { events: 0, revisions: 0, present: 0, erasedHere: 0, erasedThere: 0, damaged: 0, failed: 0 }
  readonly #failures: ImportFailure[] = []
  readonly #recipes = new Set<string>()
  #waiting: Waiting[] = []
  #keysWaiting = new Set<string>()
  #bytes = 0

  constructor(options: ImportOptions) {
    this.#options = options
    this.#keys = createImportKeys(options.sourceUuid)
    this.#promotions = new Promotions(options.store.events, options.promoted)
    this.#isOwn = options.store.facts.database_uuid === options.sourceUuid
  }

  async add(row: ReadRow): Promise<void> {
    const { payload, sha256, erasedAt } = row
    if (payload === null || sha256 === null) {
      this.#counts[erasedAt === null ? 'damaged' : 'erasedThere'] += 1
      return
    }
    const tenant = this.#options.into ?? row.meta
    if (this.#isOwn && isSameTenant(row.meta, tenant) && (await this.#isHere(row))) return
    await this.#keepRecipe(row, tenant)
    const item = await this.#itemOf(row, tenant, { payload, sha256 })
    if (item === null) {
      this.#counts.erasedHere += 1
      return
    }
    this.#waiting.push({ row, item })
    this.#keysWaiting.add(item.mintedKey)
    this.#bytes += payload.byteLength
    if (this.#waiting.length >= BATCH_ROWS || this.#bytes >= BATCH_BYTES) await this.#flush()
  }

  /** Before its event, which is indexed by it. */
  async #keepRecipe({ meta, definition }: ReadRow, { accountId, companyId }: Tenant): Promise<void> {
    const digest = definition === null || meta.recipe === null ? null : customDigest(meta.recipe)
    const key = `${companyId}:${accountId}:${digest}`
    if (digest === null || this.#recipes.has(key)) return
    this.#recipes.add(key)
    const recipe = { accountId, companyId, digest, recipe: definition!, createdAt: meta.receivedAt }
    await this.#options.store.hooks.keepRecipe(recipe)
  }

  async end(): Promise<ImportResult> {
    await this.#flush()
    return { counts: this.#counts, failures: this.#failures }
  }

  /** By its id, which names another message if the database is a clone that went its own way. */
  async #isHere(row: ReadRow): Promise<boolean> {
    const own = await this.#options.store.events.find(row.id, row.meta)
    if (own?.requestId !== row.meta.requestId) return false
    this.#pass(row, { state: own.erasedAt === null ? 'same' : 'erased', eventId: own.revises ?? own.id })
    return true
  }

  /** Null: it was promoted from a revision that was erased here. */
  async #itemOf(
    row: ReadRow,
    tenant: Tenant,
    content: Pick<ImportedItem, 'payload' | 'sha256'>,
  ): Promise<ImportedItem | null> {
    const meta = this.#keys.metaIn(row, tenant)
    if (meta.origin === 'promotion') {
      // Its revision may be waiting.
      await this.#flush()
      const promoted = await this.#promotions.of(row, tenant, meta)
      if (promoted.isErased) return null
      const mintedKey = promoted.key ?? this.#keys.keyOf(row, tenant)
      return { ...promoted.meta, mintedKey, ...content }
    }
    const key = this.#keys.keyOf(row, tenant)
    // Rows of one request in one batch would count as one message.
    const mintedKey = this.#keysWaiting.has(key) ? this.#keys.otherKeyOf(row, tenant) : key
    return { ...meta, mintedKey, ...content }
  }

  async #flush(): Promise<void> {
    const batch = this.#waiting
    const last = batch.at(-1)
    if (!last) return
    this.#waiting = []
    this.#keysWaiting = new Set()
    this.#bytes = 0
    await this.#append(await this.#notHeld(batch))
    await this.#options.onBatch(last.row.id, { ...this.#counts })
  }

  /** Those that have to be appended, under a key that no other message has. */
  async #notHeld(batch: readonly Waiting[]): Promise<Waiting[]> {
    const taken: Waiting[] = []
    const left = await this.#ask(batch, (waiting) => {
      const mintedKey = this.#keys.otherKeyOf(waiting.row, waiting.item)
      taken.push({ row: waiting.row, item: { ...waiting.item, mintedKey } })
    })
    const others = await this.#ask(taken, ({ row }) => this.#fail(row, 'another message has its key'))
    return others.length === 0 ? left : [...left, ...others].toSorted((a, b) => a.row.id - b.row.id)
  }

  async #ask(batch: readonly Waiting[], onTaken: (waiting: Waiting) => void): Promise<Waiting[]> {
    if (batch.length === 0) return []
    const held = await this.#options.store.transfer.held(batch.map(({ item }) => item))
    return batch.filter((waiting, n) => {
      const found: Held | null = held[n] ?? null
      if (found === null) return true
      if (found.state === 'taken') onTaken(waiting)
      else this.#pass(waiting.row, found)
      return false
    })
  }

  #pass(row: ReadRow, { state, eventId }: Held): void {
    const isErased = state === 'erased'
    this.#counts[isErased ? 'erasedHere' : 'present'] += 1
    this.#promotions.note(row, eventId, isErased)
  }

  async #append(batch: readonly Waiting[]): Promise<void> {
    if (batch.length === 0) return
    const outcomes = await this.#options.store.journal.append(batch.map(({ item }) => item))
    for (const [n, outcome] of outcomes.entries()) {
      const { row } = batch[n]!
      if (outcome.outcome === 'failed') {
        this.#fail(row, outcome.reason)
        continue
      }
      this.#counts[COUNTED[outcome.outcome]] += 1
      this.#promotions.note(row, outcome.id, false)
    }
  }

  #fail({ id }: ReadRow, reason: string): void {
    this.#counts.failed += 1
    if (this.#failures.length < MAX_FAILURES) this.#failures.push({ id, reason })
  }
}

const COUNTED = { stored: 'events', conflict: 'revisions', duplicate: 'present' } as const

// Erases messages: by event, conversation, e-mail address or source_ref, in pages of bounded transactions. Refusals go first, while
// the references that name them are there; then the first event of a message, its revisions and what was promoted from them. So
// an erasure that was killed ends when it is repeated. Refusals that were stored meanwhile go last; from then on, the store keeps
// none that was received before.

import { ERASE_BYTES, ERASE_ROWS, type ErasureSelector } from '../model/erasure.ts'
import type { StoredEvent } from '../model/event.ts'
import type { Tenant } from '../model/principal.ts'
import type { Clock } from '../runtime/clock.ts'
import type { ErasureStore } from '../store/contract/erasures.ts'
import type { RefusalStore } from '../store/contract/refusals.ts'
import { NamedRefusals, Names, namesEmail } from './named-refusals.ts'
import { firstOf, rowsOf, type SelectionStore, selectEvents } from './selection.ts'

export interface ErasuresOptions {
  readonly store: SelectionStore & {
    readonly erasures: ErasureStore
    readonly refusals: Pick<RefusalStore, 'list'>
  }
  readonly clock: Clock
}

export interface Erased {
  /** Messages that held content; with a dry run: that hold some. */
  readonly messages: number
  /** Their rows: events and revisions. */
  readonly events: number
  readonly refusals: number
  /** Where the next page begins; null: this was the last. */
  readonly next: number | null
}

export interface ErasePage {
  readonly selector: ErasureSelector
  readonly dryRun: boolean
  /** `next` of the page before. */
  readonly after: number | null
}

export class Erasures {
  readonly #store: ErasuresOptions['store']
  readonly #clock: Clock

  constructor({ store, clock }: ErasuresOptions) {
    this.#store = store
    this.#clock = clock
  }

  /** For all pages of one erasure; without it, each page reads all refusals anew. */
  refusalsOf(tenant: Tenant): NamedRefusals {
    return new NamedRefusals(this.#store.refusals, tenant)
  }

  /** Erases, or counts, one page of what the selector names. */
  async page(
    tenant: Tenant,
    { selector, dryRun, after }: ErasePage,
    named: NamedRefusals = this.refusalsOf(tenant),
  ): Promise<Erased> {
    const page = await selectEvents(this.#store, tenant, selector, after)
    const firsts = new Set<number>()
    for (const event of page.events) firsts.add(await firstOf(this.#store, tenant, event))
    const refusals = new Set<number>()
    const find = (ids: readonly number[]) => {
      for (const id of ids) refusals.add(id)
    }
    /** Of what the selector names itself, older refusals go with the first page. */
    const readNew = async (withOlder: boolean) => {
      const isNamed = 'email' in selector && (withOlder || named.isRead)
      find(await named.readNew((refusal) => isNamed && namesEmail(refusal, selector.email)))
    }
    await readNew(after === null)
    const names = new Names()
    if ('sourceRef' in selector) names.references.add(selector.sourceRef)
    if (after === null) find(named.of(names))

    const tally = { messages: 0, events: 0 }
    for (const first of firsts) {
      const batch = new Batch(this.#store.erasures, tenant, this.#clock, dryRun)
      for await (const rows of rowsOf(this.#store, tenant, first)) {
        const kept = rows.filter(({ erasedAt }) => erasedAt === null)
        const found = rows.flatMap((row) => named.of(Names.of(row)))
        find(found)
        for (const row of rows) names.add(row)
        if (!dryRun) await this.#deleteRefusals(tenant, found)
        for (const row of kept) await batch.add(row)
        await batch.flush()
      }
      if (batch.rows > 0) tally.messages += 1
      tally.events += batch.rows
    }
    if (!dryRun) {
      await readNew(false)
      find(named.of(names))
      await this.#deleteRefusals(tenant, Array.from(refusals))
    }
    return { ...tally, refusals: named.take(refusals), next: page.next }
  }

  /** Erases these rows alone, and their refusals. Returns how many. */
  async rows(tenant: Tenant, ids: readonly number[], named: NamedRefusals): Promise<number> {
    await named.readNew(() => false)
    const batch = new Batch(this.#store.erasures, tenant, this.#clock, false)
    for (const id of ids) {
      const event = await this.#store.events.find(id, tenant)
      if (!event || event.erasedAt !== null) continue
      await this.#deleteRefusals(tenant, named.of(Names.of(event)))
      await batch.add(event)
    }
    await batch.flush()
    return batch.rows
  }

  isPending(tenant: Tenant): Promise<boolean> {
    return this.#store.erasures.isPending(tenant)
  }

  async #deleteRefusals(tenant: Tenant, ids: readonly number[]): Promise<void> {
    if (ids.length > 0) await this.#store.erasures.deleteRefusals(tenant, ids)
  }
}

/** Rows for one transaction. */
class Batch {
  readonly #erasures: ErasureStore
  readonly #tenant: Tenant
  readonly #clock: Clock
  readonly #dryRun: boolean
  #ids: number[] = []
  #bytes = 0
  rows = 0

  constructor(erasures: ErasureStore, tenant: Tenant, clock: Clock, dryRun: boolean) {
    this.#erasures = erasures
    this.#tenant = tenant
    this.#clock = clock
    this.#dryRun = dryRun
  }

  async add({ id, size }: StoredEvent): Promise<void> {
    this.rows += 1
    if (this.#dryRun) return
    this.#ids.push(id)
    this.#bytes += size
    if (this.#ids.length >= ERASE_ROWS || this.#bytes >= ERASE_BYTES) await this.flush()
  }

  async flush(): Promise<void> {
    if (this.#ids.length === 0) return
    await this.#erasures.erase(this.#tenant, this.#ids, this.#clock.now())
    this.#ids = []
    this.#bytes = 0
  }
}

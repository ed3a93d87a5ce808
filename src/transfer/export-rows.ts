// Reads the rows of an export from the store, in id order, page by page. Payloads are read for the rows that match only, and no
// more of them at a time than fit into PAYLOAD_BYTES.

import type { StoredEvent } from '../model/event.ts'
import { isIntact } from '../model/payload.ts'
import type { Tenant } from '../model/principal.ts'
import type { DeliveryState } from '../model/processing.ts'
import { customDigest } from '../model/recipes/recipe.ts'
import type { HookStore } from '../store/contract/hooks.ts'
import type { ProcessingStore } from '../store/contract/processing.ts'
import type { TransferStore } from '../store/contract/transfer.ts'
import type { ExportedRow } from './export-row.ts'

const PAGE_ROWS = 500
const PAYLOAD_BYTES = 4 * 1024 * 1024

/** All conditions hold for a row that is exported. */
export interface ExportFilter {
  readonly tenant: Tenant | null
  /** At or after. */
  readonly from?: number | undefined
  /** Before. */
  readonly to?: number | undefined
  /** Needs a tenant. */
  readonly channelRef?: string | undefined
  /** Needs a tenant. Only events have a state. */
  readonly state?: DeliveryState | undefined
  /** Whose states are written. */
  readonly subscription?: string | undefined
}

export interface ExportSource {
  readonly transfer: Pick<TransferStore, 'rows' | 'payloads'>
  readonly processing: Pick<ProcessingStore, 'states'>
  readonly hooks: Pick<HookStore, 'recipe'>
}

export interface ExportRange {
  readonly throughId: number
  /** By which leases count as expired. */
  readonly now: number
  /** After each page: every row up to this id was looked at. */
  readonly onProgress: (id: number) => void
}

export async function* exportRows(
  store: ExportSource,
  filter: ExportFilter,
  { throughId, now, onProgress }: ExportRange,
): AsyncGenerator<ExportedRow> {
  const definitionOf = definitionReader(store.hooks)
  for (let afterId = 0; ; ) {
    const page = await store.transfer.rows({ tenant: filter.tenant, afterId, throughId, limit: PAGE_ROWS })
    const last = page.at(-1)
    if (!last) return
    const found = page.filter((event) => matches(event, filter))
    const stateOf = await readStates(store, filter, found, now)
    const wanted = found.filter((event) => filter.state === undefined || stateOf(event) === filter.state)
    for (const some of inParts(wanted)) {
      const payloads = await store.transfer.payloads(some.map(({ id }) => id))
      for (const event of some) {
        const payload = payloads.get(event.id) ?? null
        const definition = await definitionOf(event)
        if (payload !== null) yield { event, payload: intact(payload, event), state: stateOf(event), definition }
        else yield* withoutPayload(store, event, stateOf(event))
      }
    }
    afterId = last.id
    onProgress(afterId)
  }
}

/** Each custom recipe is read once. */
function definitionReader(hooks: Pick<HookStore, 'recipe'>): (event: StoredEvent) => Promise<string | null> {
  const known = new Map<string, string | null>()
  return async ({ recipe, accountId, companyId }) => {
    const digest = recipe === null ? null : customDigest(recipe)
    if (digest === null) return null
    const key = `${companyId}:${accountId}:${digest}`
    if (!known.has(key)) known.set(key, await hooks.recipe({ accountId, companyId }, digest))
    return known.get(key) ?? null
  }
}

function matches({ receivedAt, channelRef, erasedAt }: StoredEvent, filter: ExportFilter): boolean {
  if (filter.from !== undefined && receivedAt < filter.from) return false
  if (filter.to !== undefined && receivedAt >= filter.to) return false
  return filter.channelRef === undefined || (erasedAt === null && channelRef === filter.channelRef)
}

function intact(payload: Uint8Array, { sha256 }: StoredEvent): Uint8Array | null {
  return isIntact(payload, sha256) ? payload : null
}

/** The row was erased; or it is now, or gone, since its page was read. */
async function* withoutPayload(
  { transfer }: ExportSource,
  event: StoredEvent,
  state: DeliveryState | null | undefined,
): AsyncGenerator<ExportedRow> {
  const [now] =
    event.erasedAt === null
      ? await transfer.rows({ tenant: null, afterId: event.id - 1, throughId: event.id, limit: 1 })
      : [event]
  if (now) yield { event: now, payload: null, state }
}

type StateOf = (event: StoredEvent) => DeliveryState | null | undefined

async function readStates(
  { processing }: ExportSource,
  { tenant, subscription }: ExportFilter,
  events: readonly StoredEvent[],
  now: number,
): Promise<StateOf> {
  if (tenant === null || subscription === undefined) return () => undefined
  const ids = events.filter(({ kind }) => kind === 'event').map(({ id }) => id)
  const known = ids.length === 0 ? new Map() : await processing.states({ tenant, subscription }, ids, now)
  return ({ id, kind }) => (kind === 'event' ? (known.get(id) ?? 'pending') : null)
}

/** At least one event each. */
function* inParts(events: readonly StoredEvent[]): Generator<readonly StoredEvent[]> {
  for (let from = 0; from < events.length; ) {
    let to = from + 1
    for (let bytes = events[from]!.size; to < events.length; to++) {
      bytes += events[to]!.size
      if (bytes > PAYLOAD_BYTES) break
    }
    yield events.slice(from, to)
    from = to
  }
}

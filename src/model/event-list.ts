// How a list of events is read: which one of the filters leads to the rows, and how much is looked at for one page. Both
// stores go by it, so that both answer alike.

import type { DeliveryState } from './processing.ts'

/** Rows that are looked at for one page where no index leads to just the right ones. */
export const SCAN_ROWS = 10_000

/** What leads to the rows, the most telling first. */
export type Lead = 'source' | 'words' | 'email' | 'conversation' | 'revision' | 'state' | 'time' | 'all'

interface Filters {
  readonly sourceRef?: unknown
  readonly words?: unknown
  readonly contactEmail?: unknown
  readonly channelRef?: unknown
  readonly kind?: string | undefined
  readonly receivedAfter?: unknown
  readonly receivedBefore?: unknown
  readonly state?: { readonly is: DeliveryState } | undefined
}

export function leadOf(filter: Filters): Lead {
  if (filter.sourceRef !== undefined) return 'source'
  if (filter.words !== undefined) return 'words'
  if (filter.contactEmail !== undefined) return 'email'
  if (filter.channelRef !== undefined) return 'conversation'
  if (filter.kind === 'revision') return 'revision'
  // What is done is nearly everything: a time narrows it down better. What is left to do, or failed, is little.
  if (filter.state !== undefined && filter.state.is !== 'done') return 'state'
  if (filter.receivedAfter !== undefined || filter.receivedBefore !== undefined) return 'time'
  return filter.state === undefined ? 'all' : 'state'
}

/** Ids that are asked for at once where filters still have to be applied to them. */
const CHUNK = 1000

export interface FoundIds {
  /** Highest first. */
  readonly ids: readonly number[]
  /** Everything at or above is looked at; null when there is nothing below. */
  readonly searchedDownTo: number | null
}

export interface IdPage {
  readonly ids: readonly number[]
  /** Below this id the list goes on; null at its end. */
  readonly next: number | null
  readonly partial: boolean
}

type Later<T> = T | Promise<T>

export interface IdSource {
  readonly below: number
  readonly limit: number
  /** Few of the ids that are found may match: many are asked for at once. */
  readonly filtered: boolean
  readonly find: (below: number, limit: number) => Later<FoundIds>
  /** Those of the ids that have the rest of what is asked for, in their order. */
  readonly matching: (ids: readonly number[]) => Later<readonly number[]>
}

/** A page of what is found by id alone, the rest of the filters applied, under the bound of a scan. */
export async function pageOfIds({ below, limit, filtered, find, matching }: IdSource): Promise<IdPage> {
  const page: number[] = []
  let from = below
  let scanned = 0
  while (scanned < SCAN_ROWS) {
    const wanted = filtered || scanned > 0 ? Math.min(CHUNK, SCAN_ROWS - scanned) : limit + 1
    const { ids, searchedDownTo } = await find(from, wanted)
    page.push(...(await matching(ids)))
    if (page.length > limit) return { ids: page.slice(0, limit), next: page[limit - 1]!, partial: false }
    if (searchedDownTo === null) return { ids: page, next: null, partial: false }
    from = searchedDownTo
    scanned += ids.length
    if (ids.length < wanted) break
  }
  return { ids: page, next: from, partial: true }
}

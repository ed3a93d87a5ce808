// Paging of event lists: which filter's index leads to the rows (the access path), and how many rows one page may scan.
// Both stores use it, so that both return the same pages.

import type { DeliveryState } from './processing.ts'

/** Most rows that one page scans if no index covers all filters. */
export const SCAN_ROWS = 10_000

/** The filter whose index is used, the most selective first. */
export type AccessPath = 'source' | 'words' | 'email' | 'conversation' | 'revision' | 'state' | 'time' | 'all'

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

export function accessPathOf(filter: Filters): AccessPath {
  if (filter.sourceRef !== undefined) return 'source'
  if (filter.words !== undefined) return 'words'
  if (filter.contactEmail !== undefined) return 'email'
  if (filter.channelRef !== undefined) return 'conversation'
  if (filter.kind === 'revision') return 'revision'
  // Nearly all events are done, so a range of time is more selective than that state. Few events are in the other
  // states.
  if (filter.state !== undefined && filter.state.is !== 'done') return 'state'
  if (filter.receivedAfter !== undefined || filter.receivedBefore !== undefined) return 'time'
  return filter.state === undefined ? 'all' : 'state'
}

/** Then a search stops between two queries and says how far it came. */
export const SEARCH_MS = 500

/** Ids read at once while filters, or words, still have to be compared with each. */
const FILTERED_CHUNK = 1000
const WORDS_CHUNK = 16

/** Null: a page is read at once. */
export function chunkOf(isFiltered: boolean, hasWordsLeft: boolean): number | null {
  if (hasWordsLeft) return WORDS_CHUNK
  return isFiltered ? FILTERED_CHUNK : null
}

export interface FoundIds {
  /** Highest first. */
  readonly ids: readonly number[]
  /** Every id at or above this was searched; null: the search reached the end. */
  readonly searchedDownTo: number | null
}

export interface IdPage {
  readonly ids: readonly number[]
  /** The next page starts below this id; null at the end. */
  readonly next: number | null
  readonly partial: boolean
}

type Later<T> = T | Promise<T>

export interface IdSource {
  readonly below: number
  readonly limit: number
  /** How many ids to read at once: few of them may match. Null: as many as the page needs. */
  readonly chunk: number | null
  /** The time for this page is used up. */
  readonly isOver: () => boolean
  readonly find: (below: number, limit: number) => Later<FoundIds>
  /** The ids that match the remaining filters, in the same order. */
  readonly matching: (ids: readonly number[]) => Later<readonly number[]>
}

/** One page from a source of ids: applies the remaining filters and stops after SCAN_ROWS, or when the time is over. */
export async function pageOfIds({ below, limit, chunk, isOver, find, matching }: IdSource): Promise<IdPage> {
  const page: number[] = []
  let from = below
  let scanned = 0
  while (scanned < SCAN_ROWS) {
    const wanted = chunk === null && scanned === 0 ? limit + 1 : Math.min(chunk ?? FILTERED_CHUNK, SCAN_ROWS - scanned)
    const { ids, searchedDownTo } = await find(from, wanted)
    page.push(...(await matching(ids)))
    if (page.length > limit) return { ids: page.slice(0, limit), next: page[limit - 1]!, partial: false }
    if (searchedDownTo === null) return { ids: page, next: null, partial: false }
    from = searchedDownTo
    scanned += ids.length
    if (ids.length < wanted || isOver()) break
  }
  return { ids: page, next: from, partial: true }
}

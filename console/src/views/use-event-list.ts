// The data of the event list: pages by cursor, with new events on top. The stream only triggers a refresh of the first page,
// so that filters, states and warnings come from the server.

import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query'
import { useCallback, useEffect, useRef, useState } from 'react'
import type { Event } from '../../../kits/typescript/src/schema.ts'
import { useLiveChange, useLiveEvents } from '../live/live.tsx'
import { useApi } from '../session.tsx'
import type { EventFilter } from './event-filters.tsx'
import { type EventPages, mergeFirstPage } from './event-pages.ts'

const PAGE_ROWS = 50
/** Refreshes at most this often under load. */
const REFRESH_DEBOUNCE_MS = 400
/** States change without new events. */
const POLL_MS = 15_000

export interface EventList {
  readonly events: readonly Event[]
  readonly isPending: boolean
  readonly error: unknown
  readonly retry: () => void
  readonly hasMore: boolean
  readonly more: () => void
  /** New events while paused. */
  readonly waiting: number
  readonly partial: boolean
  readonly lag: number
}

export function useEventList(filters: EventFilter, isPaused: boolean): EventList {
  const api = useApi()
  const queryClient = useQueryClient()
  const queryKey = ['events', api.tenant, filters]
  const [waiting, setWaiting] = useState(0)
  const query = useInfiniteQuery({
    queryKey,
    queryFn: ({ pageParam, signal }) =>
      api.call('GET /v1/inbox/events', {
        query: { ...filters, limit: PAGE_ROWS, ...(pageParam === null ? {} : { cursor: pageParam }) },
        signal,
      }),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
    staleTime: Infinity,
    gcTime: 60_000,
  })
  const isAsking = useRef(false)
  const refreshFirstPage = async () => {
    if (isAsking.current || query.isPending) return
    isAsking.current = true
    try {
      const page = await api.call('GET /v1/inbox/events', { query: { ...filters, limit: PAGE_ROWS } })
      queryClient.setQueryData<EventPages>(queryKey, (known) => (known ? mergeFirstPage(known, page) : known))
    } catch {
      // The next refresh tries again, and the frame shows a lost connection.
    } finally {
      isAsking.current = false
    }
  }
  const latest = useRef(refreshFirstPage)
  useEffect(() => {
    latest.current = refreshFirstPage
  })
  useLiveChange(() => {
    if (!isPaused) void latest.current()
  }, REFRESH_DEBOUNCE_MS)
  useLiveEvents(() => setWaiting((seen) => seen + 1))
  useEffect(() => {
    setWaiting(0)
    if (isPaused) return
    void latest.current()
    const timer = setInterval(() => void latest.current(), POLL_MS)
    return () => clearInterval(timer)
  }, [isPaused])
  const { fetchNextPage, isFetchingNextPage } = query
  const more = useCallback(() => {
    if (!isFetchingNextPage) void fetchNextPage()
  }, [fetchNextPage, isFetchingNextPage])
  const pages = query.data?.pages ?? []
  const events = pages.flatMap((page) => page.events)
  return {
    events,
    isPending: query.isPending,
    error: query.isError && events.length === 0 ? query.error : null,
    retry: () => void query.refetch(),
    hasMore: query.hasNextPage,
    more,
    waiting,
    partial: pages.at(-1)?.partial === true,
    lag: pages[0]?.index_lag ?? 0,
  }
}

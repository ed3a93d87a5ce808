// The list of events behind the view: pages by cursor, and what came in since put on top. A stream tells that something came;
// the list is asked what it was, so that filters, states and warnings are the server's own.

import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query'
import { useCallback, useEffect, useRef, useState } from 'react'
import type { Event } from '../api/schema.ts'
import { useLiveChange, useLiveEvents } from '../live/live.tsx'
import { useApi } from '../session.tsx'
import type { EventFilter } from './event-filters.tsx'
import { type EventPages, withFreshPage } from './event-pages.ts'

const PAGE_ROWS = 50
/** Something comes in every millisecond, perhaps; nobody reads faster than this. */
const FRESHEN_EVERY_MS = 400
/** States change without an event coming in. */
const LOOK_AGAIN_MS = 15_000

export interface EventList {
  readonly events: readonly Event[]
  readonly isPending: boolean
  readonly error: unknown
  readonly retry: () => void
  readonly hasMore: boolean
  readonly more: () => void
  /** What came in while paused. */
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
  const freshen = async () => {
    if (isAsking.current || query.isPending) return
    isAsking.current = true
    try {
      const page = await api.call('GET /v1/inbox/events', { query: { ...filters, limit: PAGE_ROWS } })
      queryClient.setQueryData<EventPages>(queryKey, (known) => (known ? withFreshPage(known, page) : known))
    } catch {
      // The next one will do: the view says by itself when the connection is gone.
    } finally {
      isAsking.current = false
    }
  }
  const latest = useRef(freshen)
  useEffect(() => {
    latest.current = freshen
  })
  useLiveChange(() => {
    if (!isPaused) void latest.current()
  }, FRESHEN_EVERY_MS)
  useLiveEvents(() => setWaiting((seen) => seen + 1))
  useEffect(() => {
    setWaiting(0)
    if (isPaused) return
    void latest.current()
    const timer = setInterval(() => void latest.current(), LOOK_AGAIN_MS)
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

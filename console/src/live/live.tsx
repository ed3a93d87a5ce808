// One stream of a tenant's events for the whole page, however many views look at it. It rests while the page is hidden, and goes
// on where it was: a browser gives a server six connections, and a stream holds one.

import { createContext, type ReactNode, useContext, useEffect, useRef, useState } from 'react'
import { tenantKey, type Tenant } from '../api/client.ts'
import { followStream, type StreamPlace } from '../api/event-stream.ts'
import type { FollowedEvent } from '../api/schema.ts'

export type LiveState = 'connecting' | 'live' | 'lost'

interface Live {
  readonly state: LiveState
  readonly subscribe: (listener: (event: FollowedEvent) => void) => () => void
}

const LiveContext = createContext<Live>({ state: 'connecting', subscribe: () => () => {} })

interface LiveProps {
  readonly tenant: Tenant
  readonly onLost: (error: unknown) => void
  readonly children: ReactNode
}

export function LiveProvider({ tenant, onLost, children }: LiveProps) {
  const [state, setState] = useState<LiveState>('connecting')
  const listeners = useRef(new Set<(event: FollowedEvent) => void>())
  const [subscribe] = useState(() => (listener: (event: FollowedEvent) => void) => {
    listeners.current.add(listener)
    return () => void listeners.current.delete(listener)
  })
  const isVisible = useVisible()
  const key = tenantKey(tenant)
  const places = useRef(new Map<string, StreamPlace>())
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key stands for the tenant.
  useEffect(() => {
    if (!isVisible) return
    const end = new AbortController()
    const listener = {
      onOpen: () => setState('live'),
      onEvent: (event: FollowedEvent) => {
        for (const one of listeners.current) one(event)
      },
      onLost: (error: unknown) => {
        setState('lost')
        onLost(error)
      },
    }
    const place = places.current.get(key) ?? { lastId: '' }
    places.current.set(key, place)
    void followStream(tenant, place, listener, end.signal)
    return () => end.abort()
  }, [key, isVisible])
  return <LiveContext value={{ state, subscribe }}>{children}</LiveContext>
}

export function useLiveState(): LiveState {
  return useContext(LiveContext).state
}

/** Calls with every event that comes in while this is shown. */
export function useLiveEvents(listener: (event: FollowedEvent) => void): void {
  const { subscribe } = useContext(LiveContext)
  const latest = useRef(listener)
  useEffect(() => {
    latest.current = listener
  })
  useEffect(() => subscribe((event) => latest.current(event)), [subscribe])
}

/** Calls soon after something came in, at most once in so many milliseconds. */
export function useLiveChange(onChange: () => void, everyMs: number): void {
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null)
  useEffect(() => () => clearTimeout(timer.current ?? undefined), [])
  useLiveEvents(() => {
    timer.current ??= setTimeout(() => {
      timer.current = null
      onChange()
    }, everyMs)
  })
}

function useVisible(): boolean {
  const [isVisible, setVisible] = useState(document.visibilityState === 'visible')
  useEffect(() => {
    const look = () => setVisible(document.visibilityState === 'visible')
    document.addEventListener('visibilitychange', look)
    return () => document.removeEventListener('visibilitychange', look)
  }, [])
  return isVisible
}

// One event stream per tenant, shared by all views of the page. It is closed while the page is hidden and resumes later: a
// browser allows six connections to a server, and a stream takes one.

import { createContext, type ReactNode, useContext, useEffect, useRef, useState } from 'react'
import { tenantKey, type Tenant } from '../api/client.ts'
import { followStream, type StreamCursor } from '../api/event-stream.ts'
import type { FollowedEvent } from '../../../kits/typescript/src/schema.ts'

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
  const cursors = useRef(new Map<string, StreamCursor>())
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
    const cursor = cursors.current.get(key) ?? { lastId: '' }
    cursors.current.set(key, cursor)
    void followStream(tenant, cursor, listener, end.signal)
    return () => end.abort()
  }, [key, isVisible])
  return <LiveContext value={{ state, subscribe }}>{children}</LiveContext>
}

export function useLiveState(): LiveState {
  return useContext(LiveContext).state
}

/** Calls the listener for every new event while the component is mounted. */
export function useLiveEvents(listener: (event: FollowedEvent) => void): void {
  const { subscribe } = useContext(LiveContext)
  const latest = useRef(listener)
  useEffect(() => {
    latest.current = listener
  })
  useEffect(() => subscribe((event) => latest.current(event)), [subscribe])
}

/** Calls after new events, throttled to once in `everyMs`. */
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

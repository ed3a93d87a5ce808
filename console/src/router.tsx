// Routing by URL: /console/<account>/<company>/<view>/<id>?filters. Every view and every item has a URL, so that it can be
// shared.

import { type MouseEvent, type ReactNode, useCallback, useSyncExternalStore } from 'react'
import type { Tenant } from './api/client.ts'

export const VIEWS = [
  'overview',
  'events',
  'conversations',
  'refusals',
  'tokens',
  'hooks',
  'queue',
  'endpoints',
  'try',
] as const
export type ViewName = (typeof VIEWS)[number]

export interface ConsoleRoute {
  readonly tenant: Tenant | null
  readonly view: ViewName | null
  readonly id: string | null
  readonly query: URLSearchParams
}

/** The part of the route that a view reads. */
export type ViewProps = Pick<ConsoleRoute, 'id' | 'query'>

const BASE = '/console'
const listeners = new Set<() => void>()

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  window.addEventListener('popstate', listener)
  return () => {
    listeners.delete(listener)
    window.removeEventListener('popstate', listener)
  }
}

const currentAddress = () => window.location.pathname + window.location.search

export function useRoute(): ConsoleRoute {
  const address = useSyncExternalStore(subscribe, currentAddress)
  return parseRoute(address)
}

export function parseRoute(address: string): ConsoleRoute {
  const { pathname, searchParams } = new URL(address, 'http://here')
  const [account, company, view, id] = pathname.slice(BASE.length).split('/').filter(Boolean)
  const tenant =
    /^\d+$/.test(account ?? '') && /^\d+$/.test(company ?? '')
      ? { accountId: Number(account), companyId: Number(company) }
      : null
  return {
    tenant,
    view: VIEWS.find((name) => name === view) ?? null,
    id: id === undefined ? null : decodeURIComponent(id),
    query: searchParams,
  }
}

export function navigate(address: string, { replace = false } = {}): void {
  if (address === currentAddress()) return
  if (replace) window.history.replaceState(null, '', address)
  else window.history.pushState(null, '', address)
  for (const listener of listeners) listener()
}

export function addressFor(
  tenant: Tenant,
  view: ViewName,
  id: string | number | null = null,
  query: Readonly<Record<string, string | null | undefined>> = {},
): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value) search.set(name, value)
  const end = search.size === 0 ? '' : `?${search}`
  const tail = id === null ? '' : `/${encodeURIComponent(String(id))}`
  return `${BASE}/${tenant.accountId}/${tenant.companyId}/${view}${tail}${end}`
}

/** Sets and clears query parameters; the others stay. */
export function useQuerySetter(): (changes: Readonly<Record<string, string | null>>, replace?: boolean) => void {
  return useCallback((changes, replace = false) => {
    const url = new URL(window.location.href)
    for (const [name, value] of Object.entries(changes)) {
      if (value === null || value === '') url.searchParams.delete(name)
      else url.searchParams.set(name, value)
    }
    navigate(url.pathname + url.search, { replace })
  }, [])
}

interface LinkProps {
  readonly to: string
  readonly children: ReactNode
  readonly className?: string
  readonly current?: boolean
  readonly tabIndex?: number
  readonly title?: string
}

export function Link({ to, children, className, current, tabIndex, title }: LinkProps) {
  return (
    <a
      href={to}
      className={className}
      title={title}
      tabIndex={tabIndex}
      aria-current={current ? 'page' : undefined}
      onClick={(event) => followHere(event, to)}
    >
      {children}
    </a>
  )
}

/** Handles a plain click; with a modifier the browser's default applies. */
export function followHere(event: MouseEvent, to: string): void {
  if (event.defaultPrevented || event.button !== 0) return
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
  event.preventDefault()
  navigate(to)
}

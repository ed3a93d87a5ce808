// The frame around every view: navigation, tenant, whether we are live, theme, help, signing out.

import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import { ApiError, call, tenantKey } from './api/client.ts'
import { ENTRIES } from './entries.ts'
import { type LiveState, useLiveState } from './live/live.tsx'
import { addressFor, Link, navigate, type Place, type ViewName, type ViewProps } from './router.tsx'
import { useDesk } from './session.tsx'
import { Help } from './ui/help.tsx'
import { useShortcuts } from './ui/keyboard.ts'
import { THEMES, type Theme, useTheme } from './ui/theme.ts'
import { Conversations } from './views/conversations.tsx'
import { Events } from './views/events.tsx'
import { Overview } from './views/overview.tsx'
import { Queue } from './views/queue.tsx'
import { Refusals } from './views/refusals.tsx'
import { Tokens } from './views/tokens.tsx'
import { TryIt } from './views/try-it.tsx'

export function Shell({ place }: { readonly place: Place }) {
  const { tenant } = useDesk()
  const [isHelpOpen, setHelpOpen] = useState(false)
  const main = useRef<HTMLElement>(null)
  const entry = ENTRIES.find(({ view }) => view === place.view) ?? ENTRIES[0]!
  useEffect(() => {
    document.title = `${entry.title} · Intray`
  }, [entry])
  useShortcuts({
    '?': () => setHelpOpen(true),
    '/': () => main.current?.querySelector<HTMLInputElement>('input[type=search]')?.focus(),
    ...Object.fromEntries(
      ENTRIES.map(({ view, key }) => [`g ${key}`, () => navigate(addressFor(tenant, view))] as const),
    ),
  })
  return (
    <div className="shell">
      <a className="skip-link" href="#main">
        Skip to the content
      </a>
      <SideBar current={entry.view} onHelp={() => setHelpOpen(true)} />
      <main id="main" ref={main} tabIndex={-1} data-view={entry.view}>
        <h1>{entry.title}</h1>
        <View view={entry.view} id={place.id} query={place.query} />
      </main>
      {isHelpOpen && <Help onClose={() => setHelpOpen(false)} />}
    </div>
  )
}

function View({ view, ...props }: ViewProps & { readonly view: ViewName }) {
  switch (view) {
    case 'overview':
      return <Overview />
    case 'events':
      return <Events {...props} />
    case 'conversations':
      return <Conversations {...props} />
    case 'refusals':
      return <Refusals {...props} />
    case 'tokens':
      return <Tokens />
    case 'queue':
      return <Queue {...props} />
    case 'try':
      return <TryIt />
  }
}

function SideBar({ current, onHelp }: { readonly current: ViewName; readonly onHelp: () => void }) {
  const { tenant, operator } = useDesk()
  const [isMenuOpen, setMenuOpen] = useState(false)
  return (
    <header className="side-bar">
      <div className="brand">
        <span className="brand-name">Intray</span>
        <LiveMark state={useLiveState()} />
      </div>
      <TenantChoice />
      <button
        type="button"
        className="button menu-button"
        aria-expanded={isMenuOpen}
        onClick={() => setMenuOpen(!isMenuOpen)}
      >
        Menu
      </button>
      <nav aria-label="Views">
        <ul>
          {ENTRIES.map(({ view, title, key }) => (
            <li key={view}>
              <Link to={addressFor(tenant, view)} current={view === current} className="nav-link">
                {title}
                <span className="nav-key" aria-hidden="true">
                  g {key}
                </span>
              </Link>
            </li>
          ))}
        </ul>
      </nav>
      <div className="side-foot" data-open={isMenuOpen}>
        <ThemeChoice />
        <button type="button" className="button quiet-button" onClick={onHelp}>
          Keys and help
        </button>
        <p className="quiet who">
          {operator.name} · {operator.role}
        </p>
        <SignOut />
      </div>
    </header>
  )
}

const LIVE_WORD: Record<LiveState, string> = { connecting: 'connecting', live: 'live', lost: 'no connection' }

function LiveMark({ state }: { readonly state: LiveState }) {
  return (
    <span className="live-mark" data-live={state} role="status">
      {LIVE_WORD[state]}
    </span>
  )
}

function TenantChoice() {
  const { tenant, tenants } = useDesk()
  const known = tenants.some((one) => tenantKey(one) === tenantKey(tenant)) ? tenants : [tenant, ...tenants]
  return (
    <label className="tenant-choice">
      <span>Tenant</span>
      <select
        value={tenantKey(tenant)}
        onChange={(event) => {
          const chosen = known.find((one) => tenantKey(one) === event.target.value)
          if (chosen) navigate(addressFor(chosen, 'overview'))
        }}
      >
        {known.map((one) => (
          <option key={tenantKey(one)} value={tenantKey(one)}>
            account {one.accountId}, company {one.companyId}
          </option>
        ))}
      </select>
    </label>
  )
}

function ThemeChoice() {
  const [theme, setTheme] = useTheme()
  return (
    <label className="theme-choice">
      <span>Theme</span>
      <select value={theme} onChange={(event) => setTheme(event.target.value as Theme)}>
        {THEMES.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  )
}

function SignOut() {
  const queryClient = useQueryClient()
  const [trouble, setTrouble] = useState<string | null>(null)
  const signOut = async () => {
    try {
      await call('DELETE /v1/console/session')
    } catch (error) {
      // Without an answer the session goes on: saying otherwise would leave it open behind somebody's back.
      if (!(error instanceof ApiError && error.status === 401)) return setTrouble('Not signed out: try again.')
    }
    queryClient.setQueryData(['session'], null)
    // Nothing of what was looked at stays behind for the next one.
    queryClient.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'session' })
  }
  return (
    <button type="button" className="button quiet-button" onClick={signOut}>
      {trouble ?? 'Sign out'}
    </button>
  )
}

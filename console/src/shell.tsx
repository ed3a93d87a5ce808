// The frame around every view: navigation, tenant, connection state, theme, help, sign-out.

import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import { ApiError, call, tenantKey } from './api/client.ts'
import { ENTRIES } from './entries.ts'
import { type LiveState, useLiveState } from './live/live.tsx'
import { addressFor, Link, navigate, type ConsoleRoute, type ViewName, type ViewProps } from './router.tsx'
import { useSession } from './session.tsx'
import { Help } from './ui/help.tsx'
import { useShortcuts } from './ui/keyboard.ts'
import { THEMES, type Theme, useTheme } from './ui/theme.ts'
import { Conversations } from './views/conversations.tsx'
import { Endpoints } from './views/endpoints.tsx'
import { Events } from './views/events.tsx'
import { Hooks } from './views/hooks.tsx'
import { Overview } from './views/overview.tsx'
import { Queue } from './views/queue.tsx'
import { Refusals } from './views/refusals.tsx'
import { Tokens } from './views/tokens.tsx'
import { TryIt } from './views/try-it.tsx'

export function Shell({ route }: { readonly route: ConsoleRoute }) {
  const { tenant } = useSession()
  const [isHelpOpen, setHelpOpen] = useState(false)
  const main = useRef<HTMLElement>(null)
  const entry = ENTRIES.find(({ view }) => view === route.view) ?? ENTRIES[0]!
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
        <View view={entry.view} id={route.id} query={route.query} />
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
    case 'hooks':
      return <Hooks {...props} />
    case 'queue':
      return <Queue {...props} />
    case 'endpoints':
      return <Endpoints {...props} />
    case 'try':
      return <TryIt />
  }
}

function SideBar({ current, onHelp }: { readonly current: ViewName; readonly onHelp: () => void }) {
  const { tenant, operator } = useSession()
  const [isMenuOpen, setMenuOpen] = useState(false)
  const nav = useRef<HTMLElement>(null)
  // At the width of a phone the navigation is one line that scrolls.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the view stands for the link that is marked.
  useEffect(() => {
    nav.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' })
  }, [current])
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
      <nav ref={nav} aria-label="Views">
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
          Keyboard and help
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
  const { tenant, tenants } = useSession()
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
      // Without an answer the session may still be open, so the page must not claim that it is closed.
      if (!(error instanceof ApiError && error.status === 401)) return setTrouble('Sign-out failed: try again')
    }
    queryClient.setQueryData(['session'], null)
    // The next operator must not see cached data of this one.
    queryClient.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'session' })
  }
  return (
    <button type="button" className="button quiet-button" onClick={signOut}>
      {trouble ?? 'Sign out'}
    </button>
  )
}

// The root component: signs in with a one-time link from the URL, shows the sign-in page without a session, and the console
// with one.

import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect } from 'react'
import { ApiError, call, tenantKey, type Tenant } from './api/client.ts'
import type { SessionAnswer, TenantPage } from '../../kits/typescript/src/schema.ts'
import { LiveProvider } from './live/live.tsx'
import { addressFor, navigate, useRoute } from './router.tsx'
import { type ConsoleSession, SessionProvider } from './session.tsx'
import { Shell } from './shell.tsx'
import { Empty, Loading, ErrorNotice } from './ui/controls.tsx'
import { SignIn } from './views/sign-in.tsx'

const LAST_TENANT = 'intray.tenant'

export function App() {
  const session = useQuery({ queryKey: ['session'], queryFn: openSession, staleTime: Infinity, retry: false })
  if (session.isPending) return <Loading what="the console" />
  if (session.isError) {
    if (session.error instanceof ApiError && session.error.status === 401) return <SignIn notice={session.error} />
    return <ErrorNotice error={session.error} onRetry={() => void session.refetch()} />
  }
  if (session.data === null) return <SignIn notice={null} />
  return <SignedIn session={session.data} />
}

let opening: Promise<SessionAnswer | null> | null = null

/** A link works once: it is removed from the URL before use, and used once even if React renders twice. */
function openSession(): Promise<SessionAnswer | null> {
  const link = new URLSearchParams(window.location.hash.slice(1)).get('link')
  if (link !== null) {
    window.history.replaceState(null, '', window.location.pathname + window.location.search)
    opening = call('POST /v1/console/session', { body: { link } })
    return opening
  }
  const asked = opening ?? call('GET /v1/console/session').catch(nullIfSignedOut)
  opening = null
  return asked
}

function nullIfSignedOut(error: unknown): null {
  if (error instanceof ApiError && error.status === 401) return null
  throw error
}

function SignedIn({ session }: { readonly session: SessionAnswer }) {
  const queryClient = useQueryClient()
  const route = useRoute()
  const answer = useQuery({ queryKey: ['tenants'], queryFn: readTenants, staleTime: 30_000 })
  const tenants = answer.data ?? []
  const [first] = tenants
  const isKnown = route.tenant !== null && route.view !== null
  useEffect(() => {
    if (isKnown) {
      if (route.tenant) localStorage.setItem(LAST_TENANT, tenantKey(route.tenant))
      return
    }
    const last = tenants.find((tenant) => tenantKey(tenant) === localStorage.getItem(LAST_TENANT))
    const tenant = route.tenant ?? last ?? first
    if (tenant) navigate(addressFor(tenant, route.view ?? 'overview'), { replace: true })
  })
  if (answer.isError) return <ErrorNotice error={answer.error} onRetry={() => void answer.refetch()} />
  if (answer.isPending) return <Loading what="the console" />
  if (route.tenant === null || route.view === null) return first ? null : <NoTenant />
  const consoleSession: ConsoleSession = { operator: session.operator, tenant: route.tenant, tenants }
  const onLost = (error: unknown) => {
    if (error instanceof ApiError && error.status === 401) queryClient.setQueryData(['session'], null)
  }
  return (
    <SessionProvider value={consoleSession}>
      <LiveProvider tenant={consoleSession.tenant} onLost={onLost}>
        <Shell route={route} key={tenantKey(consoleSession.tenant)} />
      </LiveProvider>
    </SessionProvider>
  )
}

/** The choice lists at most this many tenants; others are reached by URL. */
const MAX_TENANTS = 1000

async function readTenants(): Promise<Tenant[]> {
  const tenants: Tenant[] = []
  let cursor: string | null = null
  do {
    const page: TenantPage = await call('GET /v1/console/tenants', {
      query: { limit: 200, ...(cursor === null ? {} : { cursor }) },
    })
    for (const { account_id, company_id } of page.tenants)
      tenants.push({ accountId: account_id, companyId: company_id })
    cursor = page.next
  } while (cursor !== null && tenants.length < MAX_TENANTS)
  return tenants
}

function NoTenant() {
  return (
    <main className="lonely">
      <Empty
        title="There are no tenants yet"
        command="./intray token create --account 1 --company 1 --scope cf --label 'contact form'"
      >
        <p>A tenant is an account and a company. Create its first token:</p>
      </Empty>
    </main>
  )
}

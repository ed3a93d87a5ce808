// One hook: its state, what to paste at the vendor, its latest deliveries, a sample, and every change.

import { useQuery } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { ApiError } from '../api/client.ts'
import type { HookDetail } from '../../../kits/typescript/src/schema.ts'
import { addressFor, Link } from '../router.tsx'
import { useApi, useMayChange, useSession } from '../session.tsx'
import { SafeText } from '../text/safe-text.tsx'
import { Empty, ErrorNotice, formatBytes, Loading, Time } from '../ui/controls.tsx'
import { DisableHook, EnableHook, RotateAddress, RotateSecret } from './hook-changes.tsx'
import { HookDeliveries } from './hook-deliveries.tsx'
import { HookSample } from './hook-sample.tsx'
import { HookSetup, lacksSecret } from './hook-setup.tsx'
import { HookState } from './hook-state.tsx'

export function HookPage({ keyId }: { readonly keyId: string }) {
  const api = useApi()
  const { tenant } = useSession()
  const hook = useQuery({
    queryKey: ['hooks', api.tenant, keyId],
    queryFn: () => api.call('GET /v1/console/hooks/{key_id}', { path: { key_id: keyId } }),
    refetchInterval: 10_000,
    // It holds the address.
    gcTime: 0,
  })
  return (
    <div className="page">
      <p>
        <Link to={addressFor(tenant, 'hooks')}>← All hooks</Link>
      </p>
      {hook.isError && <Missing error={hook.error} onRetry={() => void hook.refetch()} />}
      {/* A failure meanwhile must not close a dialog that shows a secret. */}
      {hook.data ? <Shown hook={hook.data.hook} /> : hook.isPending && <Loading what="the hook" />}
    </div>
  )
}

function Missing({ error, onRetry }: { readonly error: unknown; readonly onRetry: () => void }) {
  if (error instanceof ApiError && error.status === 404) return <Empty title="This tenant has no such hook" />
  return <ErrorNotice error={error} onRetry={onRetry} />
}

function Shown({ hook }: { readonly hook: HookDetail }) {
  return (
    <>
      <Head hook={hook} />
      <Changes hook={hook} />
      <div className="two-columns">
        <section className="card stack" aria-labelledby="hook-setup">
          <h3 id="hook-setup">At the vendor</h3>
          <HookSetup hook={hook} />
        </section>
        <section className="card stack" aria-labelledby="hook-facts">
          <h3 id="hook-facts">The hook</h3>
          <Facts hook={hook} />
        </section>
      </div>
      <HookDeliveries keyId={hook.key_id} />
      <HookSample hook={hook} />
    </>
  )
}

function Head({ hook }: { readonly hook: HookDetail }) {
  return (
    <header className="detail-head">
      <h2>
        {hook.name === '' ? hook.key_id : <SafeText text={hook.name} maxLength={200} />}{' '}
        <HookState state={hook.state} />
      </h2>
      <p className="quiet">
        {hook.title ? <SafeText text={hook.title} maxLength={200} /> : 'a recipe of a newer version'} ·{' '}
        {hook.last_used_at ? (
          <>
            last used <Time at={hook.last_used_at} short />
          </>
        ) : (
          'never used'
        )}
      </p>
    </header>
  )
}

type Open = 'address' | 'secret' | 'disable'

function Changes({ hook }: { readonly hook: HookDetail }) {
  const mayChange = useMayChange()
  const [open, setOpen] = useState<Open | null>(null)
  const close = () => setOpen(null)
  const lacks = lacksSecret(hook)
  return (
    <>
      {lacks && <p className="trouble">Requests are refused: the secret of the vendor has not been entered yet.</p>}
      <p className="actions">
        {hook.signature?.needs_secret && (
          <button
            type="button"
            className={lacks ? 'button main-button' : 'button'}
            disabled={!mayChange}
            onClick={() => setOpen('secret')}
          >
            {lacks ? 'Enter the secret' : 'Change the secret'}
          </button>
        )}
        <button type="button" className="button" disabled={!mayChange} onClick={() => setOpen('address')}>
          Change the address
        </button>
        {hook.state === 'disabled' ? (
          <EnableHook hook={hook} />
        ) : (
          <button
            type="button"
            className="button danger-button"
            disabled={!mayChange}
            onClick={() => setOpen('disable')}
          >
            Disable
          </button>
        )}
        {!mayChange && <span className="quiet">Only admins may change hooks.</span>}
      </p>
      {open === 'address' && <RotateAddress hook={hook} onClose={close} />}
      {open === 'secret' && <RotateSecret hook={hook} onClose={close} />}
      {open === 'disable' && <DisableHook hook={hook} onClose={close} />}
    </>
  )
}

function Facts({ hook }: { readonly hook: HookDetail }) {
  const { tenant } = useSession()
  const rows: readonly (readonly [string, ReactNode])[] = [
    ['Key id', <code key="id">{hook.key_id}</code>],
    ['Recipe', <SafeText key="recipe" text={hook.recipe} />],
    ['Scope', hook.scope],
    ['Secrets', <Secrets key="secrets" hook={hook} />],
    ['Largest body', hook.max_body_bytes === null ? 'the setting of the server' : formatBytes(hook.max_body_bytes)],
    ['Rate limit', hook.rate_limit ?? 'the setting of the server'],
    ['Created', <Time key="created" at={hook.created_at} />],
    ['Expires', hook.expires_at ? <Time key="expires" at={hook.expires_at} /> : 'never'],
    [
      'Replaces',
      hook.rotated_from && (
        <Link key="from" to={addressFor(tenant, 'hooks', hook.rotated_from)}>
          {hook.rotated_from}
        </Link>
      ),
    ],
  ]
  return (
    <dl className="facts">
      {rows.map(
        ([name, value]) =>
          value && (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ),
      )}
    </dl>
  )
}

function Secrets({ hook: { signature, secrets } }: { readonly hook: HookDetail }) {
  if (signature?.needs_secret === false) return 'none: the address is the secret'
  if (secrets === null) return 'stored encrypted'
  if (secrets.length === 0) return 'none yet'
  return (
    <ul>
      {secrets.map(({ until }, n) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: they have no other identity.
        <li key={n}>
          {until === null ? (
            'the current one'
          ) : (
            <>
              an older one, valid until <Time at={until} />
            </>
          )}
        </li>
      ))}
    </ul>
  )
}

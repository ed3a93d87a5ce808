// One endpoint: its state, its latest deliveries with latency and failures, a test, a replay, and every change.

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { ApiError } from '../api/client.ts'
import type { EndpointWithSummary } from '../../../kits/typescript/src/schema.ts'
import { addressFor, Link } from '../router.tsx'
import { useApi, useMayChange, useSession } from '../session.tsx'
import { SafeText } from '../text/safe-text.tsx'
import { count, Empty, ErrorNotice, Loading, Metric, Time } from '../ui/controls.tsx'
import { EndpointAttempts } from './endpoint-attempts.tsx'
import { RemoveEndpoint, RotateEndpointSecret, SetEndpoint } from './endpoint-dialogs.tsx'
import { EndpointReplay } from './endpoint-replay.tsx'
import { EndpointSettings } from './endpoint-settings.tsx'
import { EndpointState, StateNote } from './endpoint-state.tsx'
import { EndpointTest } from './endpoint-test.tsx'
import { useSubscriptions } from './use-subscriptions.ts'

export function EndpointPage({ subscription }: { readonly subscription: string }) {
  const { tenant } = useSession()
  const subscriptions = useSubscriptions()
  const endpoint = useEndpoint(subscription)
  const [isSetting, setSetting] = useState(false)
  const isKnown = subscriptions.data?.subscriptions.some(({ name }) => name === subscription)
  const failed = [subscriptions, endpoint].find(({ isError }) => isError)
  return (
    <div className="page">
      <p>
        <Link to={addressFor(tenant, 'endpoints')}>← All endpoints</Link>
      </p>
      {failed && <ErrorNotice error={failed.error} onRetry={() => void failed.refetch()} />}
      {subscriptions.data === undefined || endpoint.data === undefined ? (
        !failed && <Loading what="the endpoint" />
      ) : !isKnown ? (
        <Empty title="This tenant has no such subscription" />
      ) : endpoint.data === null ? (
        <NoEndpoint subscription={subscription} onSet={() => setSetting(true)} />
      ) : (
        <Shown endpoint={endpoint.data} onSet={() => setSetting(true)} />
      )}
      {/* Outside of what changes once there is an endpoint: it shows the secret then. */}
      {isSetting && (
        <SetEndpoint subscription={subscription} endpoint={endpoint.data ?? null} onClose={() => setSetting(false)} />
      )}
    </div>
  )
}

/** Null if the subscription has none. */
function useEndpoint(subscription: string) {
  const api = useApi()
  return useQuery({
    queryKey: ['endpoints', api.tenant, subscription],
    queryFn: async () => {
      try {
        return (await api.call('GET /v1/inbox/subscriptions/{name}/endpoint', { path: { name: subscription } }))
          .endpoint
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) return null
        throw error
      }
    },
    refetchInterval: 5000,
  })
}

function NoEndpoint({ subscription, onSet }: { readonly subscription: string; readonly onSet: () => void }) {
  const mayChange = useMayChange()
  return (
    <>
      <h2>{subscription}</h2>
      <Empty title="This subscription has no endpoint">
        <p>Its events wait for processors that claim. With an endpoint they are delivered to a URL instead.</p>
        <p className="actions">
          <button type="button" className="button main-button" disabled={!mayChange} onClick={onSet}>
            Set an endpoint
          </button>
          {!mayChange && <span className="quiet">Only admins may set endpoints.</span>}
        </p>
      </Empty>
    </>
  )
}

interface ShownProps {
  readonly endpoint: EndpointWithSummary
  readonly onSet: () => void
}

function Shown({ endpoint, onSet }: ShownProps) {
  return (
    <>
      <header className="detail-head">
        <h2>
          {endpoint.subscription} <EndpointState state={endpoint.state} />
        </h2>
        {endpoint.url !== null && (
          <p>
            <SafeText text={endpoint.url} />
          </p>
        )}
      </header>
      <StateNote endpoint={endpoint} />
      <Changes endpoint={endpoint} onSet={onSet} />
      <Figures endpoint={endpoint} />
      <EndpointAttempts subscription={endpoint.subscription} />
      <div className="two-columns">
        <EndpointTest subscription={endpoint.subscription} />
        <EndpointReplay subscription={endpoint.subscription} />
      </div>
      <section className="card stack" aria-labelledby="endpoint-facts">
        <h3 id="endpoint-facts">Settings</h3>
        <EndpointSettings endpoint={endpoint} />
      </section>
    </>
  )
}

type Open = 'secret' | 'remove'

function Changes({ endpoint, onSet }: ShownProps) {
  const mayChange = useMayChange()
  const [open, setOpen] = useState<Open | null>(null)
  const close = () => setOpen(null)
  const { subscription } = endpoint
  return (
    <>
      <p className="actions">
        <PauseOrResume endpoint={endpoint} />
        <button type="button" className="button" disabled={!mayChange} onClick={onSet}>
          Edit
        </button>
        <button type="button" className="button" disabled={!mayChange} onClick={() => setOpen('secret')}>
          Rotate the secret
        </button>
        <button type="button" className="button danger-button" disabled={!mayChange} onClick={() => setOpen('remove')}>
          Remove
        </button>
        {!mayChange && <span className="quiet">Only admins may change endpoints.</span>}
      </p>
      {open === 'secret' && <RotateEndpointSecret subscription={subscription} onClose={close} />}
      {open === 'remove' && <RemoveEndpoint subscription={subscription} onClose={close} />}
    </>
  )
}

function PauseOrResume({ endpoint: { subscription, state } }: { readonly endpoint: EndpointWithSummary }) {
  const api = useApi()
  const mayChange = useMayChange()
  const queryClient = useQueryClient()
  const path = { name: subscription }
  const isStopped = state === 'paused' || state === 'disabled'
  const change = useMutation({
    mutationFn: () =>
      isStopped
        ? api.call('POST /v1/inbox/subscriptions/{name}/endpoint/resume', { path })
        : api.call('POST /v1/inbox/subscriptions/{name}/endpoint/pause', { path }),
    onSuccess: () => queryClient.invalidateQueries({ queryKey: ['endpoints'] }),
  })
  return (
    <>
      <button
        type="button"
        className={isStopped ? 'button main-button' : 'button'}
        disabled={!mayChange || change.isPending}
        onClick={() => change.mutate()}
      >
        {isStopped ? 'Resume' : 'Pause'}
      </button>
      {change.isError && <ErrorNotice error={change.error} />}
    </>
  )
}

function Figures({ endpoint: { recent } }: { readonly endpoint: EndpointWithSummary }) {
  const ms = (value: number | null) => (value === null ? '–' : `${count(value)} ms`)
  const when = (at: string | null) => (at === null ? 'never' : <Time at={at} short />)
  return (
    <dl className="figures">
      <Metric name="Failed" value={count(recent.failed)} note={`of the last ${count(recent.count)} requests`} />
      <Metric name="Median latency" value={ms(recent.p50_ms)} />
      <Metric name="95th percentile" value={ms(recent.p95_ms)} />
      <Metric name="Last delivered" value={when(recent.last_delivered_at)} />
      <Metric name="Last failed" value={when(recent.last_failed_at)} />
    </dl>
  )
}

// The endpoints view: the URL to which each subscription is pushed, and its state. One endpoint has a page of its own.

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import type { Endpoint, SubscriptionCommand } from '../../../kits/typescript/src/schema.ts'
import { addressFor, Link, navigate, type ViewProps } from '../router.tsx'
import { useApi, useMayChange, useSession } from '../session.tsx'
import { SafeText } from '../text/safe-text.tsx'
import { ErrorNotice, Loading } from '../ui/controls.tsx'
import { EndpointPage } from './endpoint-page.tsx'
import { EndpointState } from './endpoint-state.tsx'
import { useSubscriptions } from './use-subscriptions.ts'

export function Endpoints({ id }: ViewProps) {
  return id === null ? <EndpointList /> : <EndpointPage key={id} subscription={id} />
}

function EndpointList() {
  const api = useApi()
  const subscriptions = useSubscriptions()
  const endpoints = useQuery({
    queryKey: ['endpoints', api.tenant],
    queryFn: () => api.call('GET /v1/inbox/endpoints'),
    refetchInterval: 5000,
  })
  const failed = [subscriptions, endpoints].find(({ isError }) => isError)
  return (
    <div className="page">
      <p className="quiet">
        A subscription with an endpoint is delivered to its URL: nobody has to poll. The others wait for processors that
        claim.
      </p>
      {failed ? (
        <ErrorNotice error={failed.error} onRetry={() => void failed.refetch()} />
      ) : subscriptions.data === undefined || endpoints.data === undefined ? (
        <Loading what="endpoints" />
      ) : (
        <EndpointTable
          names={subscriptions.data.subscriptions.map(({ name }) => name)}
          endpoints={endpoints.data.endpoints}
        />
      )}
      <NewSubscription known={subscriptions.data?.subscriptions.map(({ name }) => name) ?? []} />
    </div>
  )
}

interface EndpointTableProps {
  readonly names: readonly string[]
  readonly endpoints: readonly Endpoint[]
}

function EndpointTable({ names, endpoints }: EndpointTableProps) {
  const { tenant } = useSession()
  const byName = new Map(endpoints.map((endpoint) => [endpoint.subscription, endpoint]))
  return (
    <table className="wide-table">
      <thead>
        <tr>
          <th scope="col">Subscription</th>
          <th scope="col">URL</th>
          <th scope="col">State</th>
          <th scope="col">Body</th>
        </tr>
      </thead>
      <tbody>
        {names.map((name) => {
          const endpoint = byName.get(name)
          return (
            <tr key={name}>
              <th scope="row">
                <Link to={addressFor(tenant, 'endpoints', name)}>{name}</Link>
              </th>
              <td data-label="URL">
                {endpoint?.url ? (
                  <SafeText text={endpoint.url} maxLength={300} />
                ) : (
                  <span className="quiet">{endpoint ? 'cannot be opened' : 'none: processors claim'}</span>
                )}
              </td>
              <td data-label="State">
                {endpoint ? <EndpointState state={endpoint.state} /> : <span className="quiet">no endpoint</span>}
              </td>
              <td data-label="Body">{endpoint ? endpoint.body : <span className="quiet">–</span>}</td>
            </tr>
          )
        })}
      </tbody>
    </table>
  )
}

/** Each receiver has a subscription of its own. */
function NewSubscription({ known }: { readonly known: readonly string[] }) {
  const api = useApi()
  const { tenant } = useSession()
  const mayChange = useMayChange()
  const queryClient = useQueryClient()
  const create = useMutation({
    mutationFn: (body: SubscriptionCommand) => api.call('POST /v1/inbox/subscriptions', { body }),
    onSuccess: async (_answer, { name }) => {
      await queryClient.invalidateQueries({ queryKey: ['subscriptions'] })
      navigate(addressFor(tenant, 'endpoints', name))
    },
  })
  return (
    <form
      className="card requeue"
      aria-label="Create a subscription"
      onSubmit={(event) => {
        event.preventDefault()
        const form = new FormData(event.currentTarget)
        const name = String(form.get('name'))
        if (known.includes(name)) navigate(addressFor(tenant, 'endpoints', name))
        else create.mutate({ name, from: form.get('from') === 'now' ? 'now' : 'beginning' })
      }}
    >
      <label className="field">
        New subscription, for another receiver
        <input name="name" pattern="[a-z0-9][a-z0-9_.\-]{0,63}" placeholder="crm" required autoComplete="off" />
      </label>
      <label className="field">
        With events
        <select name="from">
          <option value="now">from now on</option>
          <option value="beginning">from the beginning</option>
        </select>
      </label>
      <button type="submit" className="button" disabled={!mayChange || create.isPending}>
        Create
      </button>
      {!mayChange && <span className="quiet">Only admins may create subscriptions.</span>}
      {create.isError && <ErrorNotice error={create.error} />}
    </form>
  )
}

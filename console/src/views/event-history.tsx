// The processing state and history of an event in each subscription, and requeueing.

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import type { Delivery } from '../../../kits/typescript/src/schema.ts'
import { useApi, useMayChange } from '../session.tsx'
import { SafeText } from '../text/safe-text.tsx'
import { Empty, Loading, StateMark, Time, ErrorNotice } from '../ui/controls.tsx'

export function EventHistory({ id }: { readonly id: number }) {
  const api = useApi()
  const history = useQuery({
    queryKey: ['history', api.tenant, id],
    queryFn: () => api.call('GET /v1/inbox/events/{id}/history', { path: { id } }),
    refetchInterval: 5000,
  })
  if (history.isError) return <ErrorNotice error={history.error} onRetry={() => void history.refetch()} />
  if (history.isPending) return <Loading what="the history" />
  if (history.data.deliveries.length === 0) return <Empty title="No processor has taken it yet" />
  return history.data.deliveries.map((delivery) => (
    <DeliveryCard key={delivery.subscription} id={id} delivery={delivery} />
  ))
}

function DeliveryCard({ id, delivery }: { readonly id: number; readonly delivery: Delivery }) {
  const api = useApi()
  const queryClient = useQueryClient()
  const mayChange = useMayChange()
  const requeue = useMutation({
    mutationFn: () =>
      api.call('POST /v1/inbox/events/{id}/requeue', {
        path: { id },
        body: { subscription: delivery.subscription },
      }),
    onSuccess: () => queryClient.invalidateQueries(),
  })
  return (
    <section className="card" aria-label={`Subscription ${delivery.subscription}`}>
      <h3>
        {delivery.subscription} <StateMark state={delivery.state} />
      </h3>
      <p className="quiet">
        {delivery.attempts} {delivery.attempts === 1 ? 'attempt' : 'attempts'}
        {delivery.claimed_by && `, last by ${delivery.claimed_by}`}
        {delivery.settled_at && (
          <>
            , settled <Time at={delivery.settled_at} />
          </>
        )}
        {delivery.lease_expires_at && (
          <>
            , leased until <Time at={delivery.lease_expires_at} />
          </>
        )}
        {delivery.available_at && (
          <>
            , not before <Time at={delivery.available_at} />
          </>
        )}
      </p>
      <ol className="history">
        {delivery.history.map((entry) => (
          <li key={`${entry.at} ${entry.what} ${entry.attempts}`}>
            <Time at={entry.at} /> {entry.what}, then {entry.state}
            {entry.key_id && ` (${entry.key_id})`}
            {entry.error && (
              <>
                : <SafeText text={entry.error} maxLength={1000} />
              </>
            )}
          </li>
        ))}
      </ol>
      {delivery.state === 'dead' && (
        <button
          type="button"
          className="button"
          disabled={!mayChange || requeue.isPending}
          onClick={() => requeue.mutate()}
        >
          Requeue
        </button>
      )}
      {requeue.isError && <ErrorNotice error={requeue.error} />}
    </section>
  )
}

// The queue view: pending, leased and dead events, and requeueing of dead ones after a count.

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useLiveChange } from '../live/live.tsx'
import { addressFor, useQuerySetter, type ViewProps } from '../router.tsx'
import { useApi, useSession, useMayChange } from '../session.tsx'
import { count, Empty, Metric, Loading, Time, ErrorNotice } from '../ui/controls.tsx'
import { Tabs } from '../ui/tabs.tsx'
import { VirtualList } from '../ui/virtual-list.tsx'
import { EventRow } from './events.tsx'
import { useEventList } from './use-event-list.ts'

const STATES = ['pending', 'leased', 'dead'] as const
type QueueState = (typeof STATES)[number]

export function Queue({ query }: ViewProps) {
  const api = useApi()
  const setQuery = useQuerySetter()
  const state: QueueState = STATES.find((name) => name === query.get('state')) ?? 'pending'
  const overview = useQuery({
    queryKey: ['overview', api.tenant],
    queryFn: () => api.call('GET /v1/console/overview'),
    refetchInterval: 5000,
  })
  useLiveChange(() => void overview.refetch(), 1000)
  const queue = overview.data?.queue
  /** The server counts up to a bound. */
  const atMost = (value: number) => (queue && value >= queue.counted_up_to ? `${count(value)}+` : count(value))
  return (
    <div className="page">
      {overview.isError && <ErrorNotice error={overview.error} />}
      {queue && (
        <dl className="figures">
          <Metric
            name="Pending"
            value={atMost(queue.pending)}
            note={
              overview.data?.oldest_pending_at ? (
                <>
                  oldest <Time at={overview.data.oldest_pending_at} short />
                </>
              ) : (
                'none'
              )
            }
          />
          <Metric name="Leased" value={atMost(queue.leased)} note="being processed" />
          <Metric
            name="Dead"
            value={atMost(queue.dead)}
            note={queue.dead > 0 ? 'parked after too many attempts' : 'none'}
          />
        </dl>
      )}
      <Requeue />
      <Tabs
        label="Events of the queue by state"
        choices={STATES.map((name) => ({ name, label: name }))}
        chosen={state}
        onChoose={(name) => setQuery({ state: name === 'pending' ? null : name }, true)}
      >
        <QueueList key={state} state={state} />
      </Tabs>
    </div>
  )
}

function QueueList({ state }: { readonly state: QueueState }) {
  const { tenant } = useSession()
  const list = useEventList({ state }, false)
  if (list.error) return <ErrorNotice error={list.error} onRetry={list.retry} />
  if (list.isPending) return <Loading what="the queue" />
  if (list.events.length === 0) return <EmptyQueue state={state} />
  return (
    <VirtualList
      label={`Events that are ${state}`}
      rows={list.events}
      rowHeight={58}
      keyOf={(event) => event.id}
      addressOf={(event) => addressFor(tenant, 'events', event.id, { tab: 'history' })}
      isOpen={() => false}
      render={(event) => <EventRow event={event} />}
      hasMore={list.hasMore}
      onMore={list.more}
    />
  )
}

function EmptyQueue({ state }: { readonly state: QueueState }) {
  const { tenant } = useSession()
  const where = `--account ${tenant.accountId} --company ${tenant.companyId}`
  if (state === 'dead') return <Empty title="No dead events" />
  if (state === 'leased') {
    return (
      <Empty title="No leased events" command={`./intray inbox claim ${where} --limit 1 --lease 10m`}>
        <p>A processor claims events under a lease. To claim one by hand:</p>
      </Empty>
    )
  }
  return <Empty title="No pending events" command={`./intray send messages.ndjson --token-file token.txt`} />
}

/** Requeues dead events after the operator has seen how many match. */
function Requeue() {
  const api = useApi()
  const queryClient = useQueryClient()
  const mayChange = useMayChange()
  const [channel, setChannel] = useState('')
  const filter = channel === '' ? {} : { filter: { channel_ref: channel } }
  const dryRun = useMutation({
    mutationFn: () => api.call('POST /v1/inbox/requeue', { body: { ...filter, dry_run: true } }),
  })
  const requeue = useMutation({
    mutationFn: () => api.call('POST /v1/inbox/requeue', { body: filter }),
    onSuccess: () => queryClient.invalidateQueries(),
  })
  const counted = dryRun.data?.matched
  const reset = () => {
    dryRun.reset()
    requeue.reset()
  }
  return (
    <form
      className="card requeue"
      aria-label="Requeue dead events"
      onSubmit={(event) => {
        event.preventDefault()
        requeue.reset()
        dryRun.mutate()
      }}
    >
      <label className="field">
        Requeue dead events of this channel_ref (empty: of all)
        <input
          value={channel}
          maxLength={512}
          onChange={(event) => {
            setChannel(event.target.value)
            reset()
          }}
        />
      </label>
      <button type="submit" className="button" disabled={!mayChange || dryRun.isPending}>
        Count
      </button>
      {counted !== undefined && !requeue.isSuccess && (
        <span className="actions" role="status">
          {counted === 0
            ? 'No dead event matches.'
            : `${count(counted)} dead ${counted === 1 ? 'event matches' : 'events match'}.`}
          {counted > 0 && (
            <button
              type="button"
              className="button main-button"
              disabled={requeue.isPending}
              onClick={() => requeue.mutate()}
            >
              Requeue {count(Math.min(counted, 1000))}
            </button>
          )}
        </span>
      )}
      {requeue.isSuccess && <span role="status">{count(requeue.data.requeued)} requeued.</span>}
      {!mayChange && <span className="quiet">Only admins may requeue.</span>}
      {(dryRun.isError || requeue.isError) && <ErrorNotice error={dryRun.error ?? requeue.error} />}
    </form>
  )
}

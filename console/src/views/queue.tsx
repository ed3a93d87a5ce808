// The queue: what waits, what is being worked on, what is dead; and the way back for the dead, with a count first.

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useLiveChange } from '../live/live.tsx'
import { addressFor, useQuerySetter, type ViewProps } from '../router.tsx'
import { useApi, useDesk, useMayChange } from '../session.tsx'
import { count, Empty, Figure, Loading, Time, Trouble } from '../ui/controls.tsx'
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
  /** Counting stops somewhere. */
  const atMost = (value: number) => (queue && value >= queue.counted_up_to ? `${count(value)}+` : count(value))
  return (
    <div className="page">
      {overview.isError && <Trouble error={overview.error} />}
      {queue && (
        <dl className="figures">
          <Figure
            name="Pending"
            value={atMost(queue.pending)}
            note={
              overview.data?.oldest_pending_at ? (
                <>
                  oldest <Time at={overview.data.oldest_pending_at} short />
                </>
              ) : (
                'nothing waits'
              )
            }
          />
          <Figure name="Leased" value={atMost(queue.leased)} note="with a processor now" />
          <Figure
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
  const { tenant } = useDesk()
  const list = useEventList({ state }, false)
  if (list.error) return <Trouble error={list.error} onRetry={list.retry} />
  if (list.isPending) return <Loading what="the queue" />
  if (list.events.length === 0) return <NothingIn state={state} />
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

function NothingIn({ state }: { readonly state: QueueState }) {
  const { tenant } = useDesk()
  const where = `--account ${tenant.accountId} --company ${tenant.companyId}`
  if (state === 'dead') return <Empty title="Nothing is dead" />
  if (state === 'leased') {
    return (
      <Empty title="Nothing is being worked on" command={`./intray inbox claim ${where} --limit 1 --lease 10m`}>
        <p>A processor claims events under a lease. By hand:</p>
      </Empty>
    )
  }
  return <Empty title="Nothing waits" command={`./intray send messages.ndjson --token-file token.txt`} />
}

/** Counts first; only what was counted and confirmed is brought back. */
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
      aria-label="Bring dead events back"
      onSubmit={(event) => {
        event.preventDefault()
        requeue.reset()
        dryRun.mutate()
      }}
    >
      <label className="field">
        Bring dead events back; of this channel_ref only (optional)
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
        Count them
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
      {requeue.isSuccess && <span role="status">{count(requeue.data.requeued)} are pending again.</span>}
      {!mayChange && <span className="quiet">Only admins may requeue.</span>}
      {(dryRun.isError || requeue.isError) && <Trouble error={dryRun.error ?? requeue.error} />}
    </form>
  )
}

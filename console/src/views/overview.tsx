// The overview: intake, refusals, queue and senders of the tenant, updated live.

import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import type { Answer } from '../api/client.ts'
import { useLiveChange } from '../live/live.tsx'
import { addressFor, Link } from '../router.tsx'
import { useApi, useSession } from '../session.tsx'
import { SafeText } from '../text/safe-text.tsx'
import { Chart } from '../ui/chart.tsx'
import { count, Empty, Metric, Loading, Time, ErrorNotice } from '../ui/controls.tsx'
import { fixFor } from './refusal-fixes.ts'
import { sampleCommand } from './snippets.ts'

type OverviewAnswer = Answer<'GET /v1/console/overview'>

export function Overview() {
  const api = useApi()
  const overview = useQuery({
    queryKey: ['overview', api.tenant],
    queryFn: () => api.call('GET /v1/console/overview'),
    refetchInterval: 5000,
  })
  useLiveChange(() => void overview.refetch(), 1000)
  if (overview.isError) return <ErrorNotice error={overview.error} onRetry={() => void overview.refetch()} />
  if (overview.isPending) return <Loading what="the overview" />
  return <OverviewMetrics overview={overview.data} />
}

function OverviewMetrics({ overview }: { readonly overview: OverviewAnswer }) {
  const { minutes } = overview.intake
  const sum = (name: 'events' | 'duplicates' | 'revisions') =>
    minutes.reduce((total, minute) => total + minute[name], 0)
  const { queue, refusals } = overview
  const refused = refusals.reduce((total, row) => total + row.count, 0)
  return (
    <div className="page overview">
      <dl className="figures">
        <Metric
          name="Received"
          value={count(sum('events'))}
          note={`in ${count(minutes.length)} min, ${count(overview.today.events)} today`}
        />
        <Metric name="Duplicates" value={count(sum('duplicates'))} note="stored once" />
        <Metric name="Revisions" value={count(sum('revisions'))} note="same source_ref, other bytes" />
        <Metric name="Refused" value={count(refused)} note="in 24 h" />
        <Metric
          name="Oldest pending"
          value={overview.oldest_pending_at ? <Time at={overview.oldest_pending_at} short /> : 'none'}
        />
        <Metric name="Index lag" value={count(overview.index_lag)} />
      </dl>
      <Chart
        title="Messages per minute"
        times={minutes.map(({ at }) => Date.parse(at) / 1000)}
        series={[
          { name: 'events', colour: '--series-1', values: minutes.map(({ events }) => events) },
          {
            name: 'duplicates',
            colour: '--series-2',
            values: minutes.map(({ duplicates }) => duplicates),
            dashed: true,
          },
          { name: 'revisions', colour: '--series-3', values: minutes.map(({ revisions }) => revisions), dashed: true },
        ]}
      />
      <div className="columns">
        <QueueCard queue={queue} />
        <RefusalCard refusals={refusals} />
        <SenderCard senders={overview.senders} />
      </div>
    </div>
  )
}

function QueueCard({ queue }: { readonly queue: OverviewAnswer['queue'] }) {
  const { tenant } = useSession()
  const rows = (['pending', 'leased', 'dead'] as const).map((state) => ({ state, value: queue[state] }))
  return (
    <section className="card" aria-labelledby="queue-card">
      <h2 id="queue-card">Queue</h2>
      <BarTable
        head={['State', 'Events']}
        rows={rows.map(({ state, value }) => ({
          key: state,
          name: (
            <Link to={addressFor(tenant, 'queue', null, { state: state === 'pending' ? null : state })}>{state}</Link>
          ),
          value,
          isAtLeast: value >= queue.counted_up_to,
        }))}
      />
    </section>
  )
}

function RefusalCard({ refusals }: { readonly refusals: OverviewAnswer['refusals'] }) {
  const { tenant } = useSession()
  return (
    <section className="card" aria-labelledby="refusal-card">
      <h2 id="refusal-card">Refusals by code</h2>
      {refusals.length === 0 ? (
        <p className="quiet">No requests were refused.</p>
      ) : (
        <BarTable
          head={['Code', 'Requests']}
          rows={refusals.map(({ code, count: value }) => ({
            key: code,
            name: (
              <Link to={addressFor(tenant, 'refusals')} title={fixFor(code).why}>
                {code}
              </Link>
            ),
            value,
          }))}
        />
      )}
    </section>
  )
}

function SenderCard({ senders }: { readonly senders: OverviewAnswer['senders'] }) {
  const { tenant } = useSession()
  return (
    <section className="card" aria-labelledby="sender-card">
      <h2 id="sender-card">Top senders, 24 h</h2>
      {senders.length === 0 ? (
        <Empty title="No messages in the last 24 h" command={sampleCommand(window.location.origin)} />
      ) : (
        <BarTable
          head={['Token', 'Events']}
          rows={senders.map(({ key_id, label, events_24h }) => ({
            key: key_id,
            name: (
              <Link to={addressFor(tenant, 'events', null, { key_id })} title={key_id}>
                {label ? <SafeText text={label} maxLength={60} /> : key_id}
              </Link>
            ),
            value: events_24h,
          }))}
        />
      )}
    </section>
  )
}

interface BarRow {
  readonly key: string
  readonly name: ReactNode
  readonly value: number
  /** The real number may be higher: counting stops at a bound. */
  readonly isAtLeast?: boolean
}

interface BarTableProps {
  readonly head: readonly [string, string]
  readonly rows: readonly BarRow[]
}

/** A table with a bar for each number. */
function BarTable({ head, rows }: BarTableProps) {
  const most = Math.max(1, ...rows.map(({ value }) => value))
  return (
    <table className="bars">
      <thead>
        <tr>
          <th scope="col">{head[0]}</th>
          <th scope="col">{head[1]}</th>
        </tr>
      </thead>
      <tbody>
        {rows.map(({ key, name, value, isAtLeast }) => (
          <tr key={key}>
            <th scope="row">{name}</th>
            <td>
              <span className="bar" style={{ inlineSize: `${(value / most) * 45}%` }} aria-hidden="true" />
              {count(value)}
              {isAtLeast && ' or more'}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

// The latest requests to an endpoint: status, latency, failure.

import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { EndpointAttempt } from '../../../kits/typescript/src/schema.ts'
import { addressFor, Link } from '../router.tsx'
import { useApi, useSession } from '../session.tsx'
import { SafeText } from '../text/safe-text.tsx'
import { count, Empty, ErrorNotice, Loading, Mark, Time } from '../ui/controls.tsx'

const SHOWN = 10
/** As many as are kept. */
const KEPT = 100

/** Why there was no answer that counts. */
const FAILURES: Readonly<Record<string, string>> = {
  forbidden_address: 'The address is one that may not be reached (INTRAY_PUSH_ALLOW).',
  unresolved: 'The host name has no address.',
  refused: 'The connection was refused.',
  timeout: 'No answer within the time limit.',
  reset: 'The connection was broken off.',
  tls: 'TLS failed.',
  invalid_answer: 'The answer was not HTTP.',
}

export function EndpointAttempts({ subscription }: { readonly subscription: string }) {
  const api = useApi()
  const [limit, setLimit] = useState(SHOWN)
  const attempts = useQuery({
    queryKey: ['endpoints', api.tenant, subscription, 'attempts', limit],
    queryFn: () =>
      api.call('GET /v1/inbox/subscriptions/{name}/endpoint/attempts', {
        path: { name: subscription },
        query: { limit },
      }),
    refetchInterval: 5000,
    placeholderData: keepPreviousData,
  })
  return (
    <section className="stack" aria-labelledby="endpoint-attempts">
      <h3 id="endpoint-attempts">Latest deliveries</h3>
      {attempts.isError ? (
        <ErrorNotice error={attempts.error} onRetry={() => void attempts.refetch()} />
      ) : attempts.isPending ? (
        <Loading what="the deliveries" />
      ) : attempts.data.attempts.length === 0 ? (
        <Empty title="Nothing was delivered yet" />
      ) : (
        <AttemptTable attempts={attempts.data.attempts} />
      )}
      {limit === SHOWN && attempts.data?.attempts.length === SHOWN && (
        <p className="actions">
          <button type="button" className="button" onClick={() => setLimit(KEPT)}>
            Show up to {KEPT}
          </button>
        </p>
      )}
    </section>
  )
}

function AttemptTable({ attempts }: { readonly attempts: readonly EndpointAttempt[] }) {
  const { tenant } = useSession()
  const slowest = Math.max(1, ...attempts.map(({ ms }) => ms))
  return (
    <table className="wide-table">
      <thead>
        <tr>
          <th scope="col">Sent</th>
          <th scope="col">Event</th>
          <th scope="col">Status</th>
          <th scope="col">Latency</th>
          <th scope="col">Failure</th>
        </tr>
      </thead>
      <tbody>
        {attempts.map((one) => (
          <tr key={`${one.at} ${one.event_id} ${one.attempt}`}>
            <th scope="row" className="when">
              <Time at={one.at} short />
            </th>
            <td data-label="Event">
              <Link to={addressFor(tenant, 'events', one.event_id, { tab: 'history' })}>{one.event_id}</Link>
              {one.attempt > 1 && <span className="quiet"> attempt {one.attempt}</span>}
            </td>
            <td data-label="Status">
              <Mark look={one.failure === null ? 'done' : 'dead'}>{one.status ?? 'no answer'}</Mark>
            </td>
            <td data-label="Latency" className="latency">
              <span className="bar" style={{ inlineSize: `${(60 * one.ms) / slowest}%` }} />
              {count(one.ms)} ms
            </td>
            <td data-label="Failure">
              <Failure attempt={one} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

/** What an endpoint answered stands in the history of the event. */
function Failure({ attempt: { failure, status } }: { readonly attempt: EndpointAttempt }) {
  if (failure === null) return <span className="quiet">none</span>
  if (status !== null) return <>It answered {status}.</>
  return FAILURES[failure] ?? <SafeText text={failure} maxLength={300} />
}

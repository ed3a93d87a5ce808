// The latest deliveries of a hook: what was stored and what was refused, with warnings and links.

import { useQuery } from '@tanstack/react-query'
import type { HookDelivery } from '../../../kits/typescript/src/schema.ts'
import { useLiveChange } from '../live/live.tsx'
import { addressFor, Link } from '../router.tsx'
import { useApi, useSession } from '../session.tsx'
import { SafeText } from '../text/safe-text.tsx'
import { Empty, ErrorNotice, formatBytes, Loading, Mark, Time } from '../ui/controls.tsx'

export function HookDeliveries({ keyId }: { readonly keyId: string }) {
  const api = useApi()
  const deliveries = useQuery({
    queryKey: ['hooks', api.tenant, keyId, 'deliveries'],
    queryFn: () => api.call('GET /v1/console/hooks/{key_id}/deliveries', { path: { key_id: keyId } }),
    refetchInterval: 5000,
  })
  useLiveChange(() => void deliveries.refetch(), 1000)
  return (
    <section className="stack" aria-labelledby="hook-deliveries">
      <h3 id="hook-deliveries">Latest deliveries</h3>
      {deliveries.isError ? (
        <ErrorNotice error={deliveries.error} onRetry={() => void deliveries.refetch()} />
      ) : deliveries.isPending ? (
        <Loading what="the deliveries" />
      ) : deliveries.data.deliveries.length === 0 ? (
        <Empty title="Nothing has arrived yet">
          <p>Set the vendor up, or send a sample below.</p>
        </Empty>
      ) : (
        <DeliveryTable deliveries={deliveries.data.deliveries} />
      )}
    </section>
  )
}

function DeliveryTable({ deliveries }: { readonly deliveries: readonly HookDelivery[] }) {
  return (
    <table className="wide-table">
      <thead>
        <tr>
          <th scope="col">Arrived</th>
          <th scope="col">Verdict</th>
          <th scope="col">Message</th>
          <th scope="col">References</th>
        </tr>
      </thead>
      <tbody>
        {deliveries.map((delivery) => (
          <tr key={`${delivery.event_id} ${delivery.refusal_id}`}>
            <th scope="row" className="when">
              <Time at={delivery.received_at} short />
              <span className="quiet block">{formatBytes(delivery.size)}</span>
            </th>
            <td data-label="Verdict">
              <Verdict delivery={delivery} />
            </td>
            <td data-label="Message">
              <Content delivery={delivery} />
            </td>
            <td data-label="References" className="references">
              <References delivery={delivery} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function Verdict({ delivery }: { readonly delivery: HookDelivery }) {
  const { tenant } = useSession()
  const { verdict, kind, is_sample: isSample, event_id: event, refusal_id: refusal } = delivery
  const isStored = verdict === 'stored'
  return (
    <>
      <Mark look={isStored ? 'done' : 'dead'}>{verdict}</Mark> {isSample && <span className="tag">sample</span>}
      {event !== null && (
        <span className="block">
          <Link to={addressFor(tenant, 'events', event)}>
            {kind === 'revision' ? 'revision' : 'event'} {event}
          </Link>
        </span>
      )}
      {refusal !== null && (
        <span className="block">
          <Link to={addressFor(tenant, 'refusals', refusal)}>refusal {refusal}</Link>
        </span>
      )}
    </>
  )
}

function Content({ delivery }: { readonly delivery: HookDelivery }) {
  const { reason, contact, snippet, message_type: type, warnings, verdict, is_indexed: isIndexed } = delivery
  if (verdict !== 'stored') return <SafeText text={reason ?? ''} maxLength={400} />
  const who = contact.name ?? contact.email
  return (
    <>
      {who !== null && (
        <strong>
          <SafeText text={who} maxLength={120} />
        </strong>
      )}{' '}
      {snippet !== null && <SafeText text={snippet} maxLength={200} />}{' '}
      {type !== null && (
        <span className="tag">
          <SafeText text={type} maxLength={40} />
        </span>
      )}
      {!isIndexed && <span className="quiet">not indexed yet</span>}
      {isIndexed && who === null && snippet === null && type === null && (
        <span className="quiet">The recipe found no contact and no text.</span>
      )}
      <Warnings warnings={warnings} />
    </>
  )
}

export function Warnings({ warnings }: Pick<HookDelivery, 'warnings'>) {
  return warnings.map(({ path, expected, got }) => (
    <span key={`${path} ${expected}`} className="warning block">
      ⚠ <SafeText text={path} maxLength={120} />: expected <SafeText text={expected} maxLength={120} />, got{' '}
      <SafeText text={got} maxLength={120} />
    </span>
  ))
}

function References({ delivery }: { readonly delivery: HookDelivery }) {
  const { verdict, source_ref: source, channel_ref: channel } = delivery
  if (verdict !== 'stored') return <span className="quiet">none</span>
  return (
    <>
      <Reference name="source_ref" value={source} />
      <Reference name="channel_ref" value={channel} />
    </>
  )
}

function Reference({ name, value }: { readonly name: string; readonly value: string | null }) {
  return (
    <span className="block">
      <span className="quiet">{name}</span>{' '}
      {value === null ? <span className="quiet">none</span> : <SafeText text={value} maxLength={120} />}
    </span>
  )
}

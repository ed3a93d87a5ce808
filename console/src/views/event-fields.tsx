// The fields of an event: those of the payload with their warnings, then how it arrived.

import { useMemo, useState } from 'react'
import type { EventDetail } from '../../../kits/typescript/src/schema.ts'
import { flatFields, type JsonField } from '../json/fields.ts'
import { SafeText } from '../text/safe-text.tsx'
import { formatBytes, count, Time } from '../ui/controls.tsx'

/** Fields shown at a time. */
const STEP = 200
/** Longer values are truncated; the Raw tab has all. */
const MAX_VALUE = 4000

export function EventFields({ event, text }: { readonly event: EventDetail; readonly text: string }) {
  const fields = useMemo(() => flatFields(text), [text])
  const [shown, setShown] = useState(STEP)
  const message = fields?.find(({ path }) => path === '/message/text')
  return (
    <>
      {event.unindexed && <p className="trouble">Not indexed: {event.unindexed}</p>}
      {message && (
        <blockquote className="message">
          <SafeText text={message.value} maxLength={MAX_VALUE} />
        </blockquote>
      )}
      <h3>Payload</h3>
      {fields === null ? (
        <p>The payload is not JSON. See the Raw tab.</p>
      ) : (
        <table className="fields">
          <thead>
            <tr>
              <th scope="col">Field</th>
              <th scope="col">Value</th>
            </tr>
          </thead>
          <tbody>
            {fields.slice(0, shown).map((field) => (
              <FieldRow key={field.path} field={field} warnings={event.warnings} />
            ))}
          </tbody>
        </table>
      )}
      {fields !== null && fields.length > shown && (
        <p className="actions">
          <button type="button" className="button" onClick={() => setShown(shown + STEP)}>
            Show {count(Math.min(STEP, fields.length - shown))} more
          </button>
          <span className="quiet">
            {count(shown)} of {count(fields.length)} fields
          </span>
        </p>
      )}
      <Arrival event={event} />
    </>
  )
}

interface FieldRowProps {
  readonly field: JsonField
  readonly warnings: EventDetail['warnings']
}

function FieldRow({ field, warnings }: FieldRowProps) {
  const warning = warnings.find(({ path }) => path === field.path || path.startsWith(`${field.path}/`))
  return (
    <tr>
      <th scope="row">
        <SafeText text={field.path.slice(1).replaceAll('/', ' › ') || '(root)'} maxLength={300} />
      </th>
      <td>
        <span data-type={field.type}>
          <SafeText text={field.value} maxLength={MAX_VALUE} />
        </span>
        {warning && (
          <span className="warning">
            ⚠ expected {warning.expected}, got {warning.got}
          </span>
        )}
      </td>
    </tr>
  )
}

function Arrival({ event }: { readonly event: EventDetail }) {
  const rows: readonly (readonly [string, string | null])[] = [
    ['source_ref', event.source_ref],
    ['channel_ref', event.channel_ref],
    ['Idempotency-Key', event.idempotency_key],
    [event.recipe === null ? 'Token' : 'Hook', event.key_id],
    ['Recipe', event.recipe],
    ['Scope', event.scope === '' ? '(none)' : event.scope],
    ['Path', event.route],
    ['Origin', event.origin],
    ['Content-Type', event.content_type],
    ['Size', formatBytes(event.size)],
    ['User-Agent', event.user_agent],
    ['Remote address', event.remote_addr],
    ['Request id', event.request_id],
    ['traceparent', event.traceparent],
    ['Sent again', event.resends === 0 ? null : `${event.resends} times`],
  ]
  return (
    <>
      <h3>Arrival</h3>
      <dl className="facts">
        {rows.map(
          ([name, value]) =>
            value !== null && (
              <div key={name}>
                <dt>{name}</dt>
                <dd>
                  <SafeText text={value} maxLength={600} />
                </dd>
              </div>
            ),
        )}
        {event.resends > 0 && (
          <div>
            <dt>Last seen</dt>
            <dd>
              <Time at={event.last_seen_at} />
            </dd>
          </div>
        )}
      </dl>
    </>
  )
}

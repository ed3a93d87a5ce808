// One event: fields with warnings, raw payload, revisions, and processing history.

import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { addressOf, ApiError, request } from '../api/client.ts'
import type { EventDetail as Detail } from '../../../kits/typescript/src/schema.ts'
import { linesOf } from '../json/lines.ts'
import { LineView } from '../json/line-view.tsx'
import { addressFor, Link, useQuerySetter } from '../router.tsx'
import { useApi, useSession } from '../session.tsx'
import { SafeText } from '../text/safe-text.tsx'
import { formatBytes, CopyButton, Empty, Loading, StateMark, Time, ErrorNotice } from '../ui/controls.tsx'
import { Tabs } from '../ui/tabs.tsx'
import { EventFields } from './event-fields.tsx'
import { EventHistory } from './event-history.tsx'
import { EventRevisions } from './event-revisions.tsx'
import { sendCommand, sendFileCommand } from './snippets.ts'

const TABS = ['fields', 'raw', 'revisions', 'history'] as const
type TabName = (typeof TABS)[number]

/** Longer bodies may not fit into a command line. */
const MAX_CURL_BODY = 100_000

interface EventDetailProps {
  readonly id: string
  readonly tab: string | null
  readonly back: string
}

export function EventDetail({ id, tab, back }: EventDetailProps) {
  const api = useApi()
  const event = useQuery({
    queryKey: ['event', api.tenant, id],
    queryFn: () => readDetail(api.text, id),
    refetchInterval: 15_000,
  })
  return (
    <article className="detail-pane" aria-label={`Event ${id}`}>
      <p className="detail-back">
        <Link to={back}>← All events</Link>
      </p>
      {event.isError ? (
        <Gone error={event.error} />
      ) : event.isPending ? (
        <Loading what="the event" />
      ) : (
        <Shown event={event.data} tab={TABS.find((name) => name === tab) ?? 'fields'} />
      )}
    </article>
  )
}

/** Parses only the metadata: the payload is loaded as text, so that it is not changed. */
async function readDetail(text: ReturnType<typeof useApi>['text'], id: string): Promise<Detail> {
  const answer = JSON.parse(await text('GET /v1/inbox/events/{id}', { path: { id } })) as { readonly event: Detail }
  return answer.event
}

function Gone({ error }: { readonly error: unknown }) {
  if (error instanceof ApiError && error.status === 404) return <Empty title="This tenant has no such event" />
  if (error instanceof ApiError && error.status === 410) return <Empty title="The content of this event was erased" />
  return <ErrorNotice error={error} />
}

function Shown({ event, tab }: { readonly event: Detail; readonly tab: TabName }) {
  const api = useApi()
  const setQuery = useQuerySetter()
  const payload = useQuery({
    queryKey: ['payload', api.tenant, event.id],
    queryFn: () => api.text('GET /v1/inbox/events/{id}/payload', { path: { id: event.id } }),
    staleTime: Infinity,
    gcTime: 30_000,
  })
  const labels: Record<TabName, ReactNode> = {
    fields: event.warnings.length > 0 ? `Fields (⚠ ${event.warnings.length})` : 'Fields',
    raw: 'Raw',
    revisions: event.revisions > 0 ? `Revisions (${event.revisions})` : 'Revisions',
    history: 'History',
  }
  const choices = TABS.filter((name) => event.kind === 'event' || name === 'fields' || name === 'raw')
  const chosen = choices.includes(tab) ? tab : 'fields'
  return (
    <>
      <Head event={event} payload={payload.data} />
      <Tabs
        label="Parts of the event"
        choices={choices.map((name) => ({ name, label: labels[name] }))}
        chosen={chosen}
        onChoose={(name) => setQuery({ tab: name === 'fields' ? null : name }, true)}
      >
        {chosen === 'history' ? (
          <EventHistory id={event.id} />
        ) : payload.isError ? (
          <Gone error={payload.error} />
        ) : payload.isPending ? (
          <Loading what="the payload" />
        ) : chosen === 'raw' ? (
          <Raw event={event} text={payload.data} />
        ) : chosen === 'revisions' ? (
          <EventRevisions event={event} text={payload.data} />
        ) : (
          <EventFields event={event} text={payload.data} />
        )}
      </Tabs>
    </>
  )
}

function Head({ event, payload }: { readonly event: Detail; readonly payload: string | undefined }) {
  const { tenant } = useSession()
  const who = event.contact.name ?? event.contact.email
  return (
    <header className="detail-head">
      <h2>
        {event.kind === 'revision' ? 'Revision' : 'Event'} {event.id} <StateMark state={event.state} />
      </h2>
      <p>
        {who ? <SafeText text={who} maxLength={120} /> : 'Unknown sender'}, <Time at={event.received_at} />
      </p>
      <p className="actions">
        {event.conversation_id !== null && (
          <Link className="button" to={addressFor(tenant, 'conversations', event.conversation_id)}>
            Conversation
          </Link>
        )}
        {event.revises !== null && (
          <Link className="button" to={addressFor(tenant, 'events', event.revises, { tab: 'revisions' })}>
            Revises event {event.revises}
          </Link>
        )}
        {event.promoted_from !== null && (
          <Link className="button" to={addressFor(tenant, 'events', event.promoted_from)}>
            Promoted from revision {event.promoted_from}
          </Link>
        )}
        {event.recipe !== null && (
          <Link className="button" to={addressFor(tenant, 'hooks', event.key_id)}>
            Hook
          </Link>
        )}
        {payload !== undefined && event.recipe === null && (
          <CopyButton text={curlFor(event, payload)}>Copy as curl</CopyButton>
        )}
      </p>
    </header>
  )
}

export function curlFor(event: Pick<Detail, 'id'>, payload: string): string {
  const { origin } = window.location
  if (payload.length > MAX_CURL_BODY) return sendFileCommand(origin, `event-${event.id}.json`)
  return sendCommand(origin, payload)
}

function Raw({ event, text }: { readonly event: Detail; readonly text: string }) {
  const { tenant } = useSession()
  const download = async () => {
    const path = { id: event.id }
    const answer = await request('GET /v1/inbox/events/{id}/payload', { tenant, path })
    const link = document.createElement('a')
    link.href = URL.createObjectURL(new Blob([await answer.arrayBuffer()], { type: 'application/octet-stream' }))
    link.download = `event-${event.id}.${/json/i.test(event.content_type) ? 'json' : 'txt'}`
    link.click()
    URL.revokeObjectURL(link.href)
  }
  return (
    <>
      <p className="actions">
        <CopyButton text={text}>Copy</CopyButton>
        <button type="button" className="button" onClick={download}>
          Download
        </button>
        <span className="quiet">
          {formatBytes(event.size)}, formatted for reading, with every digit as sent. Long lines are wrapped.
        </span>
      </p>
      <LineView lines={linesOf(text)} label="The payload" />
      <p className="quiet digest">
        SHA-256 {event.sha256} · {addressOf('/v1/inbox/events/{id}/payload', { id: event.id }, {})}
      </p>
    </>
  )
}

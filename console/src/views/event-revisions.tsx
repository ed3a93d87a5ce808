// The revisions of an event: how each differs from it, and promotion to an event of its own.

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import type { Event, EventDetail } from '../../../kits/typescript/src/schema.ts'
import { diffLines } from '../json/line-diff.ts'
import { LineView } from '../json/line-view.tsx'
import { linesOf } from '../json/lines.ts'
import { addressFor, Link } from '../router.tsx'
import { useApi, useSession, useMayChange } from '../session.tsx'
import { formatBytes, Empty, Loading, Time, ErrorNotice } from '../ui/controls.tsx'

export function EventRevisions({ event, text }: { readonly event: EventDetail; readonly text: string }) {
  const api = useApi()
  const [openId, setOpenId] = useState<number | null>(null)
  const revisions = useQuery({
    queryKey: ['revisions', api.tenant, event.id],
    queryFn: () => api.call('GET /v1/inbox/events/{id}/revisions', { path: { id: event.id }, query: { limit: 200 } }),
  })
  if (revisions.isError) return <ErrorNotice error={revisions.error} onRetry={() => void revisions.refetch()} />
  if (revisions.isPending) return <Loading what="revisions" />
  const rows = revisions.data.revisions
  if (rows.length === 0) {
    return (
      <Empty title="No revisions">
        <p>If other bytes arrive under the same source_ref, they appear here.</p>
      </Empty>
    )
  }
  const open = rows.find(({ id }) => id === openId) ?? rows.at(-1)!
  return (
    <>
      <ul className="choices" aria-label="Revisions">
        {rows.map((revision) => (
          <li key={revision.id}>
            <button
              type="button"
              className="button"
              aria-pressed={revision.id === open.id}
              onClick={() => setOpenId(revision.id)}
            >
              {revision.id} · <Time at={revision.received_at} short /> · {formatBytes(revision.size)}
            </button>
          </li>
        ))}
      </ul>
      <Difference before={text} revision={open} />
      <Promote revision={open} />
    </>
  )
}

function Difference({ before, revision }: { readonly before: string; readonly revision: Event }) {
  const api = useApi()
  const payload = useQuery({
    queryKey: ['payload', api.tenant, revision.id],
    queryFn: () => api.text('GET /v1/inbox/events/{id}/payload', { path: { id: revision.id } }),
    staleTime: Infinity,
  })
  const lines = useMemo(
    () => (payload.data === undefined ? [] : diffLines(linesOf(before), linesOf(payload.data))),
    [before, payload.data],
  )
  if (payload.isError) return <ErrorNotice error={payload.error} />
  if (payload.isPending) return <Loading what="the revision" />
  const changed = lines.filter(({ mark }) => mark !== 'same').length
  return (
    <>
      <p className="quiet">
        {changed === 0
          ? 'The fields and values are the same: only white space differs.'
          : `${changed} lines differ: − event, + revision.`}
      </p>
      <LineView lines={lines} label={`Difference between the event and revision ${revision.id}`} />
    </>
  )
}

function Promote({ revision }: { readonly revision: Event }) {
  const api = useApi()
  const { tenant } = useSession()
  const queryClient = useQueryClient()
  const mayChange = useMayChange()
  const promote = useMutation({
    mutationFn: () => api.call('POST /v1/inbox/events/{id}/promote', { path: { id: revision.id } }),
    onSuccess: () => queryClient.invalidateQueries({ queryKey: ['event'] }),
  })
  if (promote.isSuccess) {
    return (
      <p role="status">
        Promoted to <Link to={addressFor(tenant, 'events', promote.data.id)}>event {promote.data.id}</Link>.
      </p>
    )
  }
  return (
    <p className="actions">
      <button
        type="button"
        className="button"
        disabled={!mayChange || promote.isPending}
        onClick={() => promote.mutate()}
      >
        Promote revision {revision.id} to an event
      </button>
      <span className="quiet">
        {mayChange ? 'For a separate message that has the same source_ref by mistake.' : 'Only admins may promote.'}
      </span>
      {promote.isError && <ErrorNotice error={promote.error} />}
    </p>
  )
}

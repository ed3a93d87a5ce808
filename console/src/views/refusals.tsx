// The refusals view: requests with a valid token that were refused. Shows why and what was sent; an admin can correct a
// request and accept it.

import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useCallback, useState } from 'react'
import type { Refusal, RefusalDetail } from '../../../kits/typescript/src/schema.ts'
import { LineView } from '../json/line-view.tsx'
import { linesOf } from '../json/lines.ts'
import { addressFor, Link, type ViewProps } from '../router.tsx'
import { useApi, useSession, useMayChange } from '../session.tsx'
import { SafeText } from '../text/safe-text.tsx'
import { formatBytes, Empty, Loading, Time, ErrorNotice } from '../ui/controls.tsx'
import { VirtualList } from '../ui/virtual-list.tsx'
import { fixForRefusal, isOfHook, jsonObjectProblem } from './refusal-fixes.ts'

const ROW_HEIGHT = 58

export function Refusals({ id }: ViewProps) {
  const api = useApi()
  const { tenant } = useSession()
  const list = useInfiniteQuery({
    queryKey: ['refusals', api.tenant],
    queryFn: ({ pageParam }) =>
      api.call('GET /v1/inbox/refusals', {
        query: { limit: 50, ...(pageParam === null ? {} : { cursor: pageParam }) },
      }),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
    refetchInterval: 5000,
  })
  const { fetchNextPage, isFetchingNextPage } = list
  const more = useCallback(() => {
    if (!isFetchingNextPage) void fetchNextPage()
  }, [fetchNextPage, isFetchingNextPage])
  const rows = list.data?.pages.flatMap((page) => page.refusals) ?? []
  return (
    <div className="split" data-open={id !== null}>
      <section className="list-pane" aria-label="List of refusals">
        {list.isError ? (
          <ErrorNotice error={list.error} onRetry={() => void list.refetch()} />
        ) : list.isPending ? (
          <Loading what="refusals" />
        ) : rows.length === 0 ? (
          <NoRefusals />
        ) : (
          <VirtualList
            label="Refusals"
            rows={rows}
            rowHeight={ROW_HEIGHT}
            keyOf={(row) => row.id}
            addressOf={(row) => addressFor(tenant, 'refusals', row.id)}
            isOpen={(row) => String(row.id) === id}
            render={(row) => <RefusalRow refusal={row} />}
            hasMore={list.hasNextPage}
            onMore={more}
          />
        )}
      </section>
      {id !== null && <RefusalPane key={id} id={id} back={addressFor(tenant, 'refusals')} />}
    </div>
  )
}

function RefusalRow({ refusal }: { readonly refusal: Refusal }) {
  return (
    <>
      <span className="row-line">
        <span className="row-who">{refusal.error}</span>
        <span className="row-marks">
          {refusal.accepted_as !== null && <span className="tag">accepted</span>}
          <span className="tag">{refusal.key_id}</span>
        </span>
        <span className="row-time">
          <Time at={refusal.received_at} short />
        </span>
      </span>
      <span className="row-line second">
        <span className="row-text">
          <SafeText text={fixForRefusal(refusal).why} maxLength={300} />
        </span>
      </span>
    </>
  )
}

function NoRefusals() {
  return (
    <Empty
      title="No requests were refused"
      command={`curl -sS ${window.location.origin}/v1/inbox/events \\\n  -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \\\n  --data-raw '{"message":'`}
    >
      <p>Requests that were refused for a mistake are kept here with their bytes. Try one:</p>
    </Empty>
  )
}

function RefusalPane({ id, back }: { readonly id: string; readonly back: string }) {
  const api = useApi()
  const refusal = useQuery({
    queryKey: ['refusal', api.tenant, id],
    queryFn: () => api.call('GET /v1/console/refusals/{id}', { path: { id } }),
    staleTime: 60_000,
  })
  return (
    <article className="detail-pane" aria-label={`Refusal ${id}`}>
      <p className="detail-back">
        <Link to={back}>← All refusals</Link>
      </p>
      {refusal.isError ? (
        <ErrorNotice error={refusal.error} />
      ) : refusal.isPending ? (
        <Loading what="the refusal" />
      ) : (
        <RefusalContent refusal={refusal.data.refusal} />
      )}
    </article>
  )
}

function RefusalContent({ refusal }: { readonly refusal: RefusalDetail }) {
  const { tenant } = useSession()
  const ofHook = isOfHook(refusal)
  const { why, fix } = fixForRefusal(refusal)
  const problem = refusal.error === 'invalid_json' ? jsonObjectProblem(refusal.body) : null
  const isCut = refusal.body_size > new TextEncoder().encode(refusal.body).length
  return (
    <>
      <header className="detail-head">
        <h2>{refusal.error}</h2>
        <p>
          <Time at={refusal.received_at} />
        </p>
      </header>
      <div className="advice">
        <p>
          <strong>Why:</strong> <SafeText text={why} maxLength={600} /> {problem}
        </p>
        <p>
          <strong>Fix:</strong> {fix}
        </p>
      </div>
      <h3>Body as sent ({formatBytes(refusal.body_size)})</h3>
      {refusal.body === '' ? (
        <p className="quiet">The request had no body, or it was not kept.</p>
      ) : (
        <LineView lines={linesOf(refusal.body)} label="The body of the refused request" />
      )}
      {isCut && (
        <p className="quiet">Only the beginning was kept.{ofHook ? '' : ' Complete the body before you accept it.'}</p>
      )}
      {ofHook ? (
        <p className="actions">
          <Link className="button" to={addressFor(tenant, 'hooks', refusal.key_id)}>
            Hook
          </Link>
          <span className="quiet">It is not accepted here: it would be read without the recipe of its hook.</span>
        </p>
      ) : (
        <AcceptCorrected refusal={refusal} />
      )}
      <h3>The request</h3>
      <dl className="facts">
        {[
          [ofHook ? 'Hook' : 'Token', refusal.key_id] as const,
          ['Path', refusal.route] as const,
          ['Request id', refusal.request_id] as const,
          ...Object.entries(refusal.headers),
        ].map(([name, value]) => (
          <div key={name}>
            <dt>
              <SafeText text={name} maxLength={100} />
            </dt>
            <dd>
              <SafeText text={value} maxLength={600} />
            </dd>
          </div>
        ))}
      </dl>
    </>
  )
}

function AcceptCorrected({ refusal }: { readonly refusal: RefusalDetail }) {
  const api = useApi()
  const { tenant } = useSession()
  const queryClient = useQueryClient()
  const mayChange = useMayChange()
  const [isOpen, setOpen] = useState(false)
  const [text, setText] = useState(refusal.body)
  const accept = useMutation({
    mutationFn: () => api.call('POST /v1/console/refusals/{id}/accept', { path: { id: refusal.id }, bodyText: text }),
    onSuccess: () => queryClient.invalidateQueries({ queryKey: ['refusals'] }),
  })
  const acceptedAs = accept.data?.id ?? refusal.accepted_as
  if (acceptedAs !== null) {
    return (
      <p role="status" className="good-news">
        Accepted as <Link to={addressFor(tenant, 'events', acceptedAs)}>event {acceptedAs}</Link>.
      </p>
    )
  }
  if (!mayChange) return <p className="quiet">Only admins may correct and accept it.</p>
  if (!isOpen) {
    return (
      <p className="actions">
        <button type="button" className="button main-button" onClick={() => setOpen(true)}>
          Correct and accept …
        </button>
      </p>
    )
  }
  const wrong = jsonObjectProblem(text)
  return (
    <form
      className="stack"
      onSubmit={(event) => {
        event.preventDefault()
        accept.mutate()
      }}
    >
      <label className="field">
        Corrected body
        <textarea
          rows={10}
          spellCheck={false}
          value={text}
          onChange={(event) => setText(event.target.value)}
          aria-describedby="accept-problem"
        />
      </label>
      <p id="accept-problem" role="status" className={wrong ? 'warning' : 'quiet'}>
        {wrong ?? 'Valid JSON object.'}
      </p>
      {accept.isError && <ErrorNotice error={accept.error} />}
      <p className="actions">
        <button type="submit" className="button main-button" disabled={wrong !== null || accept.isPending}>
          Accept
        </button>
        <button type="button" className="button" onClick={() => setOpen(false)}>
          Cancel
        </button>
      </p>
    </form>
  )
}

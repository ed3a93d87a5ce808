// The conversations view: a list by latest activity, and one conversation as a chat.

import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useCallback } from 'react'
import type { Conversation } from '../../../kits/typescript/src/schema.ts'
import { useLiveChange } from '../live/live.tsx'
import { addressFor, useQuerySetter, type ViewProps } from '../router.tsx'
import { useApi, useSession } from '../session.tsx'
import { SafeText } from '../text/safe-text.tsx'
import { count, Empty, Loading, Time, ErrorNotice } from '../ui/controls.tsx'
import { VirtualList } from '../ui/virtual-list.tsx'
import { ConversationThread } from './conversation-thread.tsx'
import { sampleCommand } from './snippets.ts'

const ROW_HEIGHT = 76
const PAGE_ROWS = 50
const REFRESH_EVERY_MS = 1000

export function Conversations({ id, query }: ViewProps) {
  const { tenant } = useSession()
  const channel = query.get('channel_ref')
  const list = useConversations(channel)
  const filter = { channel_ref: channel }
  return (
    <div className="split" data-open={id !== null}>
      <section className="list-pane" aria-label="List of conversations">
        <ChannelSearch channel={channel ?? ''} />
        {list.query.isError ? (
          <ErrorNotice error={list.query.error} onRetry={() => void list.query.refetch()} />
        ) : list.query.isPending ? (
          <Loading what="conversations" />
        ) : list.rows.length === 0 ? (
          <NoConversations channel={channel} />
        ) : (
          <VirtualList
            label="Conversations"
            rows={list.rows}
            rowHeight={ROW_HEIGHT}
            keyOf={(row) => row.id}
            addressOf={(row) => addressFor(tenant, 'conversations', row.id, filter)}
            isOpen={(row) => String(row.id) === id}
            render={(row) => <ConversationRow conversation={row} />}
            hasMore={list.query.hasNextPage}
            onMore={list.more}
          />
        )}
      </section>
      {id !== null && <ConversationThread key={id} id={id} back={addressFor(tenant, 'conversations', null, filter)} />}
    </div>
  )
}

function useConversations(channel: string | null) {
  const api = useApi()
  const queryClient = useQueryClient()
  const queryKey = ['conversations', api.tenant, channel]
  const query = useInfiniteQuery({
    queryKey,
    queryFn: ({ pageParam, signal }) =>
      api.call('GET /v1/inbox/conversations', {
        query: {
          limit: PAGE_ROWS,
          ...(channel ? { channel_ref: channel } : {}),
          ...(pageParam === null ? {} : { cursor: pageParam }),
        },
        signal,
      }),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
  })
  // Only a list that was not scrolled far is refreshed.
  const isShort = (query.data?.pages.length ?? 0) <= 2
  useLiveChange(() => {
    if (isShort) void queryClient.invalidateQueries({ queryKey })
  }, REFRESH_EVERY_MS)
  const { fetchNextPage, isFetchingNextPage } = query
  const more = useCallback(() => {
    if (!isFetchingNextPage) void fetchNextPage()
  }, [fetchNextPage, isFetchingNextPage])
  // A conversation that moves to the front between two pages would appear twice.
  const rows = new Map<number, Conversation>()
  for (const page of query.data?.pages ?? []) {
    for (const row of page.conversations) if (!rows.has(row.id)) rows.set(row.id, row)
  }
  return { query, rows: [...rows.values()], more }
}

function ChannelSearch({ channel }: { readonly channel: string }) {
  const setQuery = useQuerySetter()
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    setQuery({ channel_ref: String(new FormData(event.currentTarget).get('channel_ref')).trim() })
  }
  return (
    <search className="filters">
      <form className="filter-row" onSubmit={submit} key={channel}>
        <input
          type="search"
          name="channel_ref"
          aria-label="Exact channel_ref"
          placeholder="Exact channel_ref ( / )"
          maxLength={512}
          defaultValue={channel}
        />
        <button type="submit" className="button">
          Find
        </button>
        {channel !== '' && (
          <button type="button" className="button quiet-button" onClick={() => setQuery({ channel_ref: null })}>
            Clear
          </button>
        )}
      </form>
    </search>
  )
}

function ConversationRow({ conversation }: { readonly conversation: Conversation }) {
  const { last_contact, unprocessed, event_count } = conversation
  const who = last_contact.name ?? last_contact.email
  return (
    <>
      <span className="row-line">
        <span className="row-who">{who ? <SafeText text={who} maxLength={80} /> : <i>no name</i>}</span>
        <span className="row-marks">
          {unprocessed > 0 && (
            <span className="state" data-state="pending">
              {count(unprocessed)} open
            </span>
          )}
          <span className="tag">
            {count(event_count)} {event_count === 1 ? 'event' : 'events'}
          </span>
        </span>
        <span className="row-time">
          <Time at={conversation.last_received_at} short />
        </span>
      </span>
      <span className="row-line second">
        <span className="row-text">
          {conversation.last_snippet ? <SafeText text={conversation.last_snippet} maxLength={160} /> : <i>no text</i>}
        </span>
      </span>
      <span className="row-line second">
        <span className="row-text row-channel">
          <SafeText text={conversation.channel_ref} maxLength={120} />
        </span>
      </span>
    </>
  )
}

function NoConversations({ channel }: { readonly channel: string | null }) {
  if (channel) return <Empty title="No conversation has this channel_ref" />
  return (
    <Empty title="No conversations yet" command={sampleCommand(window.location.origin)}>
      <p>Messages with the same channel_ref form one conversation. Start one:</p>
    </Empty>
  )
}

// Client of GET /v1/inbox/stream. Uses fetch, because EventSource cannot send the tenant header. Reconnects after the last
// id it received, so that no event is missed.

import { EventBlocks } from '../../../kits/typescript/src/event-blocks.ts'
import type { FollowedEvent } from '../../../kits/typescript/src/schema.ts'
import { ApiError, request, type Tenant } from './client.ts'

export interface StreamListener {
  readonly onOpen: () => void
  readonly onEvent: (event: FollowedEvent) => void
  /** The stream reconnects by itself, unless the session is over. */
  readonly onLost: (error: unknown) => void
}

const FIRST_WAIT_MS = 500
const LONGEST_WAIT_MS = 15_000
/** The server sends a heartbeat every 15 s. */
const SILENCE_MS = 40_000

/** The last id received; empty before the first. */
export interface StreamCursor {
  lastId: string
}

/** Follows the stream from the cursor until the signal, reconnecting with back-off. */
export async function followStream(
  tenant: Tenant,
  cursor: StreamCursor,
  listener: StreamListener,
  signal: AbortSignal,
): Promise<void> {
  let waitMs = FIRST_WAIT_MS
  while (!signal.aborted) {
    try {
      await readOnce(tenant, cursor, listener, signal, () => {
        waitMs = FIRST_WAIT_MS
      })
      if (!signal.aborted) listener.onLost(null)
    } catch (error) {
      if (signal.aborted) return
      listener.onLost(error)
      if (error instanceof ApiError && (error.status === 401 || error.status === 403)) return
      // The database was restored, and the last event is not in it.
      if (error instanceof ApiError && error.status === 409) cursor.lastId = ''
    }
    await pause(waitMs, signal)
    waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS)
  }
}

async function readOnce(
  tenant: Tenant,
  cursor: StreamCursor,
  listener: StreamListener,
  signal: AbortSignal,
  onAlive: () => void,
): Promise<void> {
  const silence = new AbortController()
  let timer = setTimeout(() => silence.abort(), SILENCE_MS)
  const either = AbortSignal.any([signal, silence.signal])
  try {
    const resume = cursor.lastId === '' ? {} : { 'Last-Event-ID': cursor.lastId }
    const answer = await request('GET /v1/inbox/stream', { tenant, signal: either }, resume)
    listener.onOpen()
    const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader()
    const blocks = new EventBlocks()
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      onAlive()
      clearTimeout(timer)
      timer = setTimeout(() => silence.abort(), SILENCE_MS)
      for (const { id, data } of blocks.push(value)) {
        if (id !== null) cursor.lastId = id
        if (data !== null) listener.onEvent(JSON.parse(data) as FollowedEvent)
      }
    }
  } finally {
    clearTimeout(timer)
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}

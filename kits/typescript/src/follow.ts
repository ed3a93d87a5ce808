// Follows what comes in, as an async iterator: reconnects by itself after the last id it received, also when the service
// falls silent.

import { StringDecoder } from 'node:string_decoder'
import { backoffMs, pause } from './backoff.ts'
import { Unavailable } from './errors.ts'
import { EventBlocks } from './event-blocks.ts'
import type { HttpClient } from './http-client.ts'
import type { FollowedEvent } from './schema.ts'

export interface FollowOptions {
  /** Begins after this id; 0 is before the first. Left out: with what comes from now on. */
  readonly after?: number | undefined
  readonly signal: AbortSignal
  readonly silenceMs: number
  readonly onProblem: (error: Error) => void
}

const WAIT_FOR_FIX_MS = 60_000
const LONGEST_PAUSE_MS = 15_000

/** Ends when the signal is aborted. Throws Refused if the service does not take the request. */
export async function* follow(http: HttpClient, options: FollowOptions): AsyncGenerator<FollowedEvent, void, void> {
  const { signal, onProblem } = options
  const cursor = { lastId: options.after === undefined ? null : String(options.after), failures: 0 }
  let toldOfFix = false
  while (!signal.aborted) {
    let waitMs = 0
    try {
      yield* readOnce(http, options, cursor)
      waitMs = backoffMs(++cursor.failures, null, LONGEST_PAUSE_MS)
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error
      if (error.needsFix && !toldOfFix && !signal.aborted) onProblem(error)
      toldOfFix = error.needsFix
      waitMs = error.needsFix ? WAIT_FOR_FIX_MS : backoffMs(++cursor.failures, error.retryAfterMs, LONGEST_PAUSE_MS)
    }
    if (cursor.failures === 0) toldOfFix = false
    await pause(waitMs, signal)
  }
}

async function* readOnce(
  http: HttpClient,
  { signal, silenceMs }: FollowOptions,
  cursor: { lastId: string | null; failures: number },
): AsyncGenerator<FollowedEvent, void, void> {
  const resume = cursor.lastId === null ? {} : { 'Last-Event-ID': cursor.lastId }
  const answer = await http.open('/v1/inbox/stream', { Accept: 'text/event-stream', ...resume }, signal)
  const decoder = new StringDecoder('utf8')
  const blocks = new EventBlocks()
  const chunks = answer[Symbol.asyncIterator]() as AsyncIterator<Buffer>
  try {
    for (;;) {
      // Only while this waits: a slow consumer is no silence.
      const silent = setTimeout(() => answer.destroy(new Error('silent')), silenceMs)
      const next = await chunks.next().catch(() => null)
      clearTimeout(silent)
      // However it ended, it is opened again.
      if (next === null || next.done) return
      cursor.failures = 0
      for (const { id, data } of blocks.push(decoder.write(next.value))) {
        if (id !== null) cursor.lastId = id
        if (data !== null) yield JSON.parse(data) as FollowedEvent
        if (signal.aborted) return
      }
    }
  } finally {
    answer.destroy()
  }
}

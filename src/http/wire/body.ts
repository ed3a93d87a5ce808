// Reads the body of a request up to a limit, and discards bodies that nobody reads.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { BodyChunks } from './body-chunks.ts'
import type { BodyReservation } from './body-memory.ts'

/**
 * Lingering close: what is discarded after an early answer, so that a TCP reset does not destroy the answer. The time counts from the
 * last bytes that came: a slow client gets its answer too. All of it is bounded by the time that a request may take.
 */
const LINGER_MS = 2000
const LINGER_BYTES = 16 * 1024 * 1024
/** Joined of a body whose client disconnects or that has no room: many may end in one turn of the event loop. */
const MAX_START_BYTES = 64 * 1024

export interface CollectedBody {
  /** What arrived, at most the limit. If it is `no_memory` or `aborted`, only the start. */
  readonly bytes: Buffer
  /** Of what arrived, at most the limit. */
  readonly size: number
  /** `no_memory`: the memory for bodies is in use. `aborted`: the client disconnected. */
  readonly state: 'whole' | 'too_large' | 'no_memory' | 'aborted'
}

/** Reads until the body ends or exceeds the limit. The rest stays in the stream. */
export function collectBody(
  req: IncomingMessage,
  maxBytes: number,
  reservation: BodyReservation | null = null,
): Promise<CollectedBody> {
  return collect(req, maxBytes, hasArrived(req) ? fromStream : fromParser, reservation)
}

/** The same for a stream that has other listeners, such as the lingering close. */
export function collectBodyStart(req: IncomingMessage, maxBytes: number): Promise<CollectedBody> {
  return collect(req, maxBytes, fromStream, null)
}

/** Passes chunks to `onChunk`, and null at the end, until `isDone`. */
type ChunkSource = (req: IncomingMessage, onChunk: (chunk: Buffer | null) => void, isDone: () => boolean) => void

const fromStream: ChunkSource = (req, onChunk) => {
  req.on('data', onChunk).on('end', () => onChunk(null))
}

function collect(
  req: IncomingMessage,
  maxBytes: number,
  source: ChunkSource,
  reservation: BodyReservation | null,
): Promise<CollectedBody> {
  return new Promise((resolve) => {
    const chunks = new BodyChunks(reservation)
    let done = false
    const finish = (state: CollectedBody['state']) => {
      if (done) return
      done = true
      req.off('close', onClose)
      const size = Math.min(chunks.size, maxBytes)
      const isLost = state === 'no_memory' || state === 'aborted'
      resolve({ bytes: chunks.take(isLost ? Math.min(size, MAX_START_BYTES) : size), size, state })
    }
    const onClose = () => finish('aborted')
    if (req.errored || req.destroyed) return finish('aborted')
    const onChunk = (chunk: Buffer | null) => {
      if (done) return
      if (chunk === null) return finish('whole')
      if (!chunks.add(chunk)) return finish('no_memory')
      if (chunks.size > maxBytes) finish('too_large')
    }
    source(req, onChunk, () => done)
    req.on('close', onClose)
  })
}

/** Whether the stream holds a part of the body already, because the token was looked up in the store first. */
function hasArrived(req: IncomingMessage): boolean {
  return req.complete || req.readableLength > 0 || req.readableFlowing !== null
}

/**
 * Replaces the `push` that Node's parser calls, and restores it when done. Without the stream's own work, bare node:http answers
 * 1.2 times as many requests (docs/internals/adr/0002).
 */
const fromParser: ChunkSource = (req, onChunk, isDone) => {
  const stream = req as IncomingMessage & NodeInternals
  stream.push = (chunk: Buffer | null) => {
    onChunk(chunk)
    if (chunk === null) markEnded(stream)
    else if (isDone()) delete (stream as Partial<IncomingMessage>).push
    return true
  }
}

interface NodeInternals {
  _consuming: boolean
  readonly _readableState: { ended: boolean; endEmitted: boolean }
}

/**
 * Otherwise Node would keep the request until it has read the stream to its end. Requests would then survive minor garbage
 * collections, which took 10 ms instead of 2 (docs/internals/adr/0002).
 */
function markEnded(stream: NodeInternals): void {
  stream._consuming = true
  stream._readableState.ended = true
  stream._readableState.endEmitted = true
}

/** Lingering close: answers at once while the body still arrives, and closes when the client stops sending. */
export function endAndLinger(req: IncomingMessage, res: ServerResponse, body: string | Uint8Array): void {
  // Node would hold the head back until end() if there is no body to write.
  if (req.method === 'HEAD' || body.length === 0) res.flushHeaders()
  else res.write(body)
  let discarded = 0
  const finish = () => {
    clearTimeout(timer)
    req.off('data', onData)
    if (!res.writableEnded) res.end()
  }
  const onData = (chunk: Buffer) => {
    discarded += chunk.length
    clearTimeout(timer)
    timer = setTimeout(finish, LINGER_MS)
    if (discarded > LINGER_BYTES) finish()
  }
  let timer = setTimeout(finish, LINGER_MS)
  req.on('data', onData).once('end', finish).once('close', finish)
  req.resume()
}

// Reads the body of a request up to a limit, and discards bodies that nobody reads.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { declaredLength } from './head.ts'
import type { BodyReservation } from './body-memory.ts'

/** Lingering close: time and bytes to discard after an early answer, so that a TCP reset does not destroy the answer. */
const LINGER_MS = 2000
const LINGER_BYTES = 16 * 1024 * 1024

export interface CollectedBody {
  /** What arrived, at most the limit. */
  readonly bytes: Buffer
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
    const buffer = new BodyBuffer(declaredLength(req), reservation)
    let done = false
    const finish = (state: CollectedBody['state']) => {
      if (done) return
      done = true
      req.off('close', onClose)
      resolve({ bytes: buffer.bytes(maxBytes), state })
    }
    const onClose = () => finish('aborted')
    if (req.errored || req.destroyed) return finish('aborted')
    const onChunk = (chunk: Buffer | null) => {
      if (done) return
      if (chunk === null) return finish('whole')
      if (!buffer.add(chunk)) return finish('no_memory')
      if (buffer.size > maxBytes) finish('too_large')
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

/**
 * Joins chunks. The first is not copied, since most bodies are one chunk; later ones are: a million chunks of one byte, each with
 * a Buffer object, would take 240 MB.
 */
class BodyBuffer {
  readonly #declared: number | null
  readonly #reservation: BodyReservation | null
  #buffer: Buffer = EMPTY
  size = 0

  constructor(declared: number | null, reservation: BodyReservation | null) {
    this.#declared = declared
    this.#reservation = reservation
  }

  /** False if the memory for bodies is in use. */
  add(chunk: Buffer): boolean {
    const size = this.size + chunk.length
    if (this.size === 0) {
      this.#buffer = chunk
    } else {
      if (size > this.#buffer.length) {
        // The declared length bounds the capacity but allocates nothing.
        const wanted = Math.max(2 * size, SMALLEST_COPY)
        const capacity = Math.max(size, Math.min(wanted, this.#declared ?? wanted))
        if (this.#reservation && !this.#reservation.growTo(capacity)) return false
        const grown = Buffer.allocUnsafeSlow(capacity)
        this.#buffer.copy(grown, 0, 0, this.size)
        this.#buffer = grown
      }
      chunk.copy(this.#buffer, this.size)
    }
    this.size = size
    return true
  }

  bytes(maxBytes: number): Buffer {
    return this.#buffer.subarray(0, Math.min(this.size, maxBytes))
  }
}

const EMPTY = Buffer.alloc(0)
const SMALLEST_COPY = 16 * 1024

/** Lingering close: answers at once while the body still arrives, and closes when the client stops sending or after the linger. */
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
    if (discarded > LINGER_BYTES) finish()
  }
  const timer = setTimeout(finish, LINGER_MS)
  req.on('data', onData).once('end', finish).once('close', finish)
  req.resume()
}

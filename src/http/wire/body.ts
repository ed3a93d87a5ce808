// The body of a request: collected up to a limit that is counted on the stream, and decoded up to the same limit.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import type { Problem } from '../../model/errors.ts'
import { declaredLength } from './head.ts'
import type { Share } from './body-memory.ts'

/** What arrives after an early answer is read and thrown away for this long, so that the answer is not lost in a reset. */
const LINGER_MS = 2000
const LINGER_BYTES = 16 * 1024 * 1024

export interface Collected {
  /** What arrived, at most the limit. */
  readonly bytes: Buffer
  /** `whole`: the body ended. `more`: it exceeds the limit. `no_room`: others take up the room. `gone`: the client went away. */
  readonly state: 'whole' | 'more' | 'no_room' | 'gone'
}

/** Reads until the body ends or exceeds the limit. What comes after that is left to the stream. */
export function collectBody(req: IncomingMessage, maxBytes: number, share: Share | null = null): Promise<Collected> {
  return collect(req, maxBytes, hasArrived(req) ? takeFromStream : takeFromParser, share)
}

/** The same beside others who wait for the end of the stream. */
export function collectBeside(req: IncomingMessage, maxBytes: number): Promise<Collected> {
  return collect(req, maxBytes, takeFromStream, null)
}

/** Hands every piece to `take`, and null at the end, until it says that it wants no more. */
type Taking = (req: IncomingMessage, take: (chunk: Buffer | null) => void, isDone: () => boolean) => void

const takeFromStream: Taking = (req, take) => {
  req.on('data', take).on('end', () => take(null))
}

function collect(req: IncomingMessage, maxBytes: number, startTaking: Taking, share: Share | null): Promise<Collected> {
  return new Promise((resolve) => {
    const collector = new Collector(declaredLength(req), share)
    let done = false
    const finish = (state: Collected['state']) => {
      if (done) return
      done = true
      req.off('close', onClose)
      share?.end()
      resolve({ bytes: collector.bytes(maxBytes), state })
    }
    const onClose = () => finish('gone')
    if (req.errored || req.destroyed) return finish('gone')
    const take = (chunk: Buffer | null) => {
      if (done) return
      if (chunk === null) return finish('whole')
      if (!collector.add(chunk)) return finish('no_room')
      if (collector.size > maxBytes) finish('more')
    }
    startTaking(req, take, () => done)
    req.on('close', onClose)
  })
}

/** Some of the body is in the stream already, because the token had to be looked up first. */
function hasArrived(req: IncomingMessage): boolean {
  return req.complete || req.readableLength > 0 || req.readableFlowing !== null
}

/**
 * Node's parser hands every piece of a body, and null at its end, to the request's `push`. Taken there, a body skips the
 * machinery of a stream: bare node:http answers 1.2 times as many requests without it (docs/internals/adr/0002). When no more is
 * wanted the stream is a stream again.
 */
const takeFromParser: Taking = (req, take, isDone) => {
  const stream = req as IncomingMessage & NodeInternals
  stream.push = (chunk: Buffer | null) => {
    take(chunk)
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
 * Nobody is left to read. Otherwise node would read the stream to its end once the answer is out, and wait for that end with
 * the request in its hands: requests then outlive young collections, which took 10 ms each instead of 2 (docs/internals/adr/0002).
 */
function markEnded(stream: NodeInternals): void {
  stream._consuming = true
  stream._readableState.ended = true
  stream._readableState.endEmitted = true
}

/**
 * Puts chunks together. The first is kept as it is, since most bodies are one; further ones are copied: a buffer object
 * for each of a million chunks of one byte would take 240 MB for a body of one.
 */
class Collector {
  readonly #declared: number | null
  readonly #share: Share | null
  #buffer: Buffer = NOTHING
  size = 0

  constructor(declared: number | null, share: Share | null) {
    this.#declared = declared
    this.#share = share
  }

  /** False if there is no room for it. */
  add(chunk: Buffer): boolean {
    const size = this.size + chunk.length
    if (this.size === 0) {
      this.#buffer = chunk
    } else {
      if (size > this.#buffer.length) {
        // What is announced bounds the buffer; it does not make one.
        const wanted = Math.max(2 * size, SMALLEST_COPY)
        const capacity = Math.max(size, Math.min(wanted, this.#declared ?? wanted))
        if (this.#share && !this.#share.grow(capacity)) return false
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

const NOTHING = Buffer.alloc(0)
const SMALLEST_COPY = 16 * 1024

const gunzipAsync = promisify(gunzip)

/** Undoes gzip. A bomb stops at the limit. */
export async function gunzipBody(bytes: Buffer, maxBytes: number): Promise<Buffer | Problem> {
  try {
    return await gunzipAsync(bytes, { maxOutputLength: maxBytes })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') return { code: 'payload_too_large', maxBytes }
    return {
      code: 'invalid_json',
      message: 'The body is not valid gzip data. Compress it again, or send it uncompressed.',
    }
  }
}

/**
 * Ends an answer whose request is still arriving. The answer goes out whole at once; the connection is closed only when
 * the client has stopped sending or the linger is over, since closing on unread bytes would reset it and take the
 * answer along.
 */
export function endAndLinger(req: IncomingMessage, res: ServerResponse, body: string | Uint8Array): void {
  // Without a body to write, node would keep the head back until the end.
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

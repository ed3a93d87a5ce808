// Gives a connection's bytes to Node's HTTP parser one request at a time. Node would parse and run whatever a client sends
// ahead of the answers: requests would overtake each other, and answers that nobody reads would pile up.
//
//   idle ───head───► receiving ───body complete───► answering ───answer flushed───► idle …
//   gives bytes to    gives the body,                gives nothing
//   the end of a head answered or not
//
// Bytes that may not be given yet are held, and the socket is paused while there are any. #advance() alone gives bytes, pauses
// and resumes, and stop() resumes for good; new bytes, the end of the stream, a finished answer and a drained socket call it.
// Time-outs: idle and receiving have those of Node's parser; answering ends with the handler, or with the time-out of a socket
// whose client does not read.
//
// It cuts where a head or a chunked body must end, at CR LF CR LF, or after Content-Length bytes. A cut changes nothing for
// the parser, which alone decides where a request ends: a cut in a wrong place could only give two requests at once, and then
// the second is not run.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Turns } from '../../runtime/turn-queue.ts'
import { declaredLength } from './head.ts'
import { isClosing } from './open-answer.ts'

const HEAD_END = Buffer.from('\r\n\r\n')
const NONE = Buffer.alloc(0)
/** A body of CR LF only would take as many calls of the parser as it has lines: the rest waits for another turn. */
const MAX_CUTS_PER_TURN = 64
/** Of a chunked body in one job: a chunk takes 6 bytes and a microsecond or more. */
const CHUNKED_BYTES = 512

type Listener = (...args: unknown[]) => void
const SERIAL = Symbol('serial requests')
type SerialSocket = Socket & { [SERIAL]?: SerialRequests }

/** Null for a connection of the fast path. */
export function serialRequests(socket: SerialSocket): SerialRequests | null {
  return socket[SERIAL] ?? null
}

export class SerialRequests {
  readonly #socket: Socket
  readonly #turns: Turns
  readonly #parse: Listener
  readonly #parseEnd: Listener
  #held: Buffer = NONE
  #hasEnded = false
  /** The request that arrives or waits for its answer. */
  #request: IncomingMessage | null = null
  #isAnswered = false
  /** Bytes of the request's Content-Length that the parser was not given. */
  #bodyLeft = 0
  /** The last bytes that the parser was given, too few to hold CR LF CR LF. */
  #lastGiven: Buffer = NONE
  #isPaused = false
  #isQueued = false
  #isOver = false

  /** `attach` adds the listeners of Node's HTTP server; those for bytes and for their end are taken over. */
  constructor(socket: SerialSocket, turns: Turns, attach: () => void) {
    this.#socket = socket
    this.#turns = turns
    socket[SERIAL] = this
    this.#hasEnded = socket.readableEnded
    const ends = socket.listeners('end')
    attach()
    this.#parse = socket.listeners('data')[0] as Listener
    this.#parseEnd = socket.listeners('end').find((listener) => !ends.includes(listener)) as Listener
    // A listener of our own also makes Node stop reading the socket underneath the stream.
    socket.off('data', this.#parse).on('data', (chunk: Buffer) => this.receive(chunk))
    socket.off('end', this.#parseEnd).on('end', () => {
      this.#hasEnded = true
      this.#advance()
    })
    socket.on('drain', () => this.#advance()).on('close', () => this.stop())
  }

  /** Bytes from the client. */
  receive(chunk: Buffer): void {
    this.#held = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk])
    const hasTurn = !this.#isWaiting && !this.#isQueued && this.#turns.hasRoom()
    if (!this.#isWaiting && !hasTurn) this.#queue()
    this.#advance(hasTurn)
  }

  /** Called with each request that the parser found. False: a request is still open, and this one must not be run. */
  begin(request: IncomingMessage, response: ServerResponse): boolean {
    if (this.#request !== null) return false
    this.#request = request
    this.#isAnswered = false
    this.#bodyLeft = declaredLength(request) ?? 0
    response.once('close', () => {
      this.#isAnswered = true
      if (this.#held.length > 0) this.#queue()
      else this.#advance()
    })
    return true
  }

  /** Drops what follows the last answer, so that the end of the client's side is seen while that answer goes on. */
  dropRest(): void {
    this.#advance()
  }

  /** The parser is given nothing more, because Node has freed it or will; further bytes are read and ignored. */
  stop(): void {
    this.#isOver = true
    this.#held = NONE
    this.#socket.resume()
  }

  /** `hasTurn`: this job was counted, or waited for its turn. */
  #advance(hasTurn = false): void {
    for (let cuts = 0; ; cuts += 1) {
      const size = this.#nextSize()
      if (size === 0) break
      const mayGo = (hasTurn && cuts === 0) || !this.#isInChunks || this.#turns.hasRoom()
      if (cuts === MAX_CUTS_PER_TURN || !mayGo) {
        this.#queue()
        break
      }
      const bytes = this.#held.subarray(0, size)
      this.#held = size === this.#held.length ? NONE : this.#held.subarray(size)
      if (this.#bodyLeft > 0) {
        this.#bodyLeft -= size
        this.#lastGiven = NONE
      } else {
        this.#lastGiven = Buffer.concat([this.#lastGiven, bytes.subarray(1 - HEAD_END.length)]).subarray(
          1 - HEAD_END.length,
        )
      }
      this.#parse(bytes)
    }
    if (this.#held.length > 0 && (this.#isWaiting || this.#isQueued)) {
      this.#isPaused = true
      this.#socket.pause()
    } else if (this.#isPaused) {
      this.#isPaused = false
      this.#socket.resume()
    }
    if (this.#hasEnded && this.#held.length === 0 && !this.#isOver) {
      this.stop()
      this.#parseEnd()
    }
  }

  /** How many of the held bytes the parser may have now. */
  #nextSize(): number {
    if (this.#request?.complete) this.#bodyLeft = 0
    if (this.#request?.complete && this.#isAnswered) this.#request = null
    // Bytes after the last request are ignored (RFC 9112, 9.6).
    if (isClosing(this.#socket) && this.#request?.complete !== false) this.#held = NONE
    if (this.#isOver || this.#socket.destroyed) this.#held = NONE
    const { length } = this.#held
    if (length === 0 || this.#isWaiting || this.#isQueued) return 0
    if (this.#bodyLeft > 0) return Math.min(length, this.#bodyLeft)
    // CR LF CR LF may have begun with the bytes before.
    const seam = Buffer.concat([this.#lastGiven, this.#held.subarray(0, HEAD_END.length - 1)]).indexOf(HEAD_END)
    if (seam !== -1) return seam + HEAD_END.length - this.#lastGiven.length
    const some = this.#isInChunks ? this.#held.subarray(0, CHUNKED_BYTES) : this.#held
    const end = some.indexOf(HEAD_END)
    return end === -1 ? some.length : end + HEAD_END.length
  }

  /** The parser is in a body whose length it does not know. */
  get #isInChunks(): boolean {
    return this.#request !== null && !this.#request.complete && this.#bodyLeft === 0
  }

  /** For the answer of a complete request, or for the client to read what was answered. */
  get #isWaiting(): boolean {
    return this.#request === null ? this.#socket.writableNeedDrain : this.#request.complete
  }

  /** Other connections come first. */
  #queue(): void {
    if (this.#isQueued) return
    this.#isQueued = true
    this.#turns.runLater(() => {
      this.#isQueued = false
      this.#advance(true)
    })
  }
}

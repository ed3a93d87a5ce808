// The fast path in front of Node's HTTP parser: reads plain intake requests from the socket and writes their answers, at half
// the cost of Node's request and response objects (docs/internals/adr/0031). Any other request goes to Node's parser, with the
// connection and all bytes that have arrived, and the connection stays there.
//
//   fresh ──plain request──► busy ──answered──► idle ──plain request──► busy …      (busy: also while it waits for its turn)
//     │                                           │
//     ╰── another request, or an incomplete one after RECEIVE_TIMEOUT_MS ──► Node
//
// Promises: one request at a time on a connection, answered in order; while a request is busy, no more is read.

import type { Socket } from 'node:net'
import type { Logger } from '../../runtime/log.ts'
import type { Turns } from '../../runtime/turn-queue.ts'
import type { SentAnswer } from '../access-log.ts'
import type { Exchange } from '../exchange.ts'
import { logUnexpected } from '../handler.ts'
import { answerProblem, type IntakeCall } from '../intake-call.ts'
import type { IntakeHandler } from '../intake-handler.ts'
import type { TextAnswer } from '../problem.ts'
import type { Route } from '../routes.ts'
import { answerText } from './answer-text.ts'
import type { CollectedBody } from './body.ts'
import type { RequestHead } from './head.ts'
import { createPlainReaders, type NewPlainReader, type PlainRequest, type ReadPlainRequest } from './plain-request.ts'

export interface FastPathOptions {
  /** The intake routes by path, including aliases. */
  readonly routes: ReadonlyMap<string, Route>
  readonly handler: IntakeHandler
  readonly maxHeaderBytes: number
  readonly maxHeaders: number
  readonly keepAliveTimeout: number
  readonly lifecycle: { readonly stopping: boolean }
  /** The turns of the connection's client address. */
  readonly turnsOf: (socket: Socket) => Turns
  readonly logger: Logger
  /** Passes a connection to Node's HTTP server, with the bytes that have arrived. */
  readonly passToNode: (socket: Socket, bytes: Buffer) => void
  /** Called when the client closes in the middle of a request. */
  readonly onClientError: (error: Error, socket: Socket) => void
  readonly begin: (head: RequestHead) => Exchange
  /** Called once for each exchange: when its answer was written, or could not be. */
  readonly end: (exchange: Exchange, head: RequestHead, answer: SentAnswer) => void
}

/** Time for a complete request to arrive; then the connection goes to Node, which has its own timeouts. */
const RECEIVE_TIMEOUT_MS = 500
/** One interval checks all timeouts: a timer for each connection would be reset with every read and write. */
const TICK_MS = 125
/** Added to the announced keep-alive timeout, as Node does: the next request may be on its way. */
const KEEP_ALIVE_GRACE_MS = 1000

/** The error of Node's parser for the same case. */
const UNEXPECTED_END = Object.assign(new Error('the request ended before it was whole'), {
  code: 'HPE_INVALID_EOF_STATE',
})

const NONE = Buffer.alloc(0)

export class FastPath {
  readonly options: FastPathOptions
  readonly newReader: NewPlainReader
  readonly keepAlive: string
  readonly #connections = new Set<Connection>()
  /** Runs while there are connections. */
  #interval: NodeJS.Timeout | null = null
  #ticks = 0

  constructor(options: FastPathOptions) {
    this.options = options
    this.newReader = createPlainReaders(options.routes, options)
    this.keepAlive = `Connection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(options.keepAliveTimeout / 1000)}`
  }

  accept(socket: Socket): void {
    const connection = new Connection(this, socket, () => this.#connections.delete(connection))
    this.#connections.add(connection)
    this.#interval ??= setInterval(() => this.#tick(), TICK_MS).unref()
  }

  /** The clock of the timeouts. */
  get ticks(): number {
    return this.#ticks
  }

  #tick(): void {
    this.#ticks += 1
    for (const connection of this.#connections) connection.checkTimeout()
    if (this.#connections.size > 0) return
    clearInterval(this.#interval!)
    this.#interval = null
  }

  closeIdle(): void {
    for (const connection of this.#connections) connection.closeIfIdle()
  }

  closeAll(): void {
    for (const { socket } of this.#connections) socket.destroy()
  }
}

class Connection {
  readonly socket: Socket
  readonly #fastPath: FastPath
  readonly #onDetach: () => void
  readonly #read: ReadPlainRequest
  readonly #turns: Turns
  /** The first part of a request. */
  #partial: Buffer | null = null
  #isBusy = false
  #hasEnded = false
  #isAttached = true
  /** Had its last answer: later bytes are ignored (RFC 9112, 9.6). */
  #isClosing = false
  #timeoutMs = 0
  /** The tick at which the timeout is over. */
  #timeoutTick = 0

  constructor(fastPath: FastPath, socket: Socket, onDetach: () => void) {
    this.#fastPath = fastPath
    this.socket = socket
    this.#onDetach = onDetach
    this.#read = fastPath.newReader(socket)
    this.#turns = fastPath.options.turnsOf(socket)
    socket.on('data', this.#onData).on('end', this.#onEnd).on('error', this.#onError)
    socket.on('close', this.#onClose)
    this.#startTimeout(RECEIVE_TIMEOUT_MS)
  }

  /** A busy connection has no timeout. */
  checkTimeout(): void {
    if (this.#isBusy || this.#fastPath.ticks < this.#timeoutTick) return
    if (this.#timeoutMs === RECEIVE_TIMEOUT_MS && !this.#isClosing) {
      const partial = this.#partial
      this.#partial = null
      this.#handOver(partial ?? NONE)
    } else {
      this.socket.destroy()
    }
  }

  closeIfIdle(): void {
    if (!this.#isBusy && !this.#isClosing && this.#partial === null) this.socket.destroy()
  }

  /** Writes the answer of the busy request. False if the client disconnected. */
  write(text: string, isLast: boolean): boolean {
    const { socket } = this
    this.#isBusy = false
    if (socket.destroyed || !socket.writable) return false
    socket.write(text)
    // Also for the last answer, which the client may not read.
    this.#startTimeout(this.#fastPath.options.keepAliveTimeout + KEEP_ALIVE_GRACE_MS)
    if (isLast || this.#hasEnded) {
      this.#isClosing = true
      socket.destroySoon()
      return true
    }
    // Delivers what #onData put back.
    if (socket.isPaused()) socket.resume()
    return true
  }

  readonly #onData = (chunk: Buffer): void => {
    if (this.#isClosing) return
    if (this.#isBusy) {
      // The client pipelines: put the chunk back, ahead of the end of the stream, and read no more until the answer.
      this.socket.pause()
      this.socket.unshift(chunk)
      return
    }
    if (this.#turns.hasRoom()) {
      this.#receive(chunk)
      return
    }
    this.#isBusy = true
    this.#turns.runLater(() => this.#receiveLater(chunk))
  }

  #receive(chunk: Buffer): void {
    const bytes = this.#partial === null ? chunk : Buffer.concat([this.#partial, chunk])
    const isContinuation = this.#partial !== null
    this.#partial = null
    this.#handle(bytes, isContinuation)
  }

  /** In a later turn; meanwhile the connection was busy, and the client may have sent more, ended its side or left. */
  #receiveLater(chunk: Buffer): void {
    const { socket } = this
    this.#isBusy = false
    if (socket.destroyed) return
    this.#receive(chunk)
    if (this.#isBusy || this.#isClosing) return
    if (socket.isPaused()) socket.resume()
    else if (this.#hasEnded && this.#isAttached) this.#onEnd()
  }

  #handle(bytes: Buffer, isContinuation: boolean): void {
    const reading = this.#read(bytes)
    if (reading === 'not_plain' || this.socket.writableNeedDrain) {
      this.#handOver(bytes)
    } else if (reading !== 'incomplete' && reading.isComplete) {
      this.#run(reading)
    } else if (isContinuation) {
      this.#handOver(bytes)
    } else {
      this.#partial = bytes
      this.#startTimeout(RECEIVE_TIMEOUT_MS)
    }
  }

  #run(request: PlainRequest): void {
    const { handler, begin, logger } = this.#fastPath.options
    this.#isBusy = true
    const call = new PlainCall(this.#fastPath, this, request, begin(request.head))
    handler(call).catch((error: unknown) => {
      logUnexpected(logger, error, call.exchange)
      answerProblem(call, { code: 'internal_error' })
    })
  }

  #handOver(bytes: Buffer): void {
    this.#detach()
    this.#fastPath.options.passToNode(this.socket, bytes)
  }

  #detach(): void {
    const { socket } = this
    this.#isAttached = false
    socket.off('data', this.#onData).off('end', this.#onEnd).off('error', this.#onError)
    socket.off('close', this.#onClose)
    this.#onDetach()
  }

  readonly #onEnd = (): void => {
    this.#hasEnded = true
    if (this.#isBusy) return
    if (this.#partial === null) {
      this.socket.end()
      return
    }
    this.#logAborted()
    this.#partial = null
    this.#isClosing = true
    this.#fastPath.options.onClientError(UNEXPECTED_END, this.socket)
  }

  readonly #onError = (): void => {
    this.socket.destroy()
  }

  readonly #onClose = (): void => {
    this.#onDetach()
    if (!this.#isBusy) this.#logAborted()
  }

  /** Logs a request whose client disconnects in the middle, as for requests that Node parses. */
  #logAborted(): void {
    const { options } = this.#fastPath
    const reading = this.#partial === null ? 'not_plain' : this.#read(this.#partial)
    if (typeof reading === 'string') return
    const exchange = options.begin(reading.head)
    exchange.route = reading.route.path
    options.end(exchange, reading.head, { status: null, isComplete: false })
  }

  #startTimeout(ms: number): void {
    this.#timeoutMs = ms
    // The next tick may come at once, so it does not count.
    this.#timeoutTick = this.#fastPath.ticks + 1 + Math.ceil(ms / TICK_MS)
  }
}

/** The call of the intake handler for a plain request. */
class PlainCall implements IntakeCall {
  readonly route: Route
  readonly head: RequestHead
  readonly exchange: Exchange
  readonly #fastPath: FastPath
  readonly #connection: Connection
  readonly #body: Buffer
  readonly #isLast: boolean
  #isAnswered = false

  constructor(fastPath: FastPath, connection: Connection, request: PlainRequest, exchange: Exchange) {
    this.#fastPath = fastPath
    this.#connection = connection
    this.route = request.route
    this.head = request.head
    this.exchange = exchange
    this.#body = request.body
    this.#isLast = request.isLast
    exchange.route = request.route.path
  }

  /** Ignores the limit: the handler has checked the declared length. */
  readBody(): CollectedBody {
    return { bytes: this.#body, size: this.#body.length, state: 'whole' }
  }

  readBodyStart(maxBytes: number): Buffer {
    return this.#body.subarray(0, maxBytes)
  }

  answer(answer: TextAnswer): void {
    if (this.#isAnswered) return
    this.#isAnswered = true
    const { exchange, head } = this
    const { lifecycle, end } = this.#fastPath.options
    const isLast = this.#isLast || lifecycle.stopping
    const connection = isLast ? 'Connection: close' : this.#fastPath.keepAlive
    const text = answerText(answer, exchange.requestId, exchange.rateFields, connection)
    const isComplete = this.#connection.write(text, isLast)
    end(exchange, head, { status: isComplete ? answer.status : null, isComplete })
  }
}

// In front of node's HTTP parser: reads plain requests for intake from the bare socket and writes their answers there, which
// costs half of what node's request and response objects do (docs/internals/adr/0031). Whatever is not plain goes to node, with the
// connection and every byte that has arrived, and stays there.
//
//   fresh ──plain request──► busy ──answered──► idle ──plain request──► busy …
//     │                                           │
//     ╰── anything else, or part of a request and no more of it for a while ──► node
//
// Promises: one request at a time on a connection, answered in order; while it is under way, no more is read.

import type { Socket } from 'node:net'
import type { Logger } from '../../runtime/log.ts'
import type { Answering } from '../access-log.ts'
import type { Exchange } from '../exchange.ts'
import { logUnexpected } from '../handler.ts'
import { answerProblem, type IntakeCall, type IntakeHandler } from '../intake-handler.ts'
import type { TextAnswer } from '../problem.ts'
import type { Route } from '../routes.ts'
import { answerText } from './answer-text.ts'
import type { Collected } from './body.ts'
import type { RequestHead } from './head.ts'
import { createPlainReaders, type NewPlainReader, type PlainRequest, type ReadPlainRequest } from './plain-request.ts'

export interface FastPathOptions {
  /** The intake routes, by every path that means one. */
  readonly routes: ReadonlyMap<string, Route>
  readonly handler: IntakeHandler
  readonly maxHeaderBytes: number
  readonly keepAliveTimeout: number
  readonly lifecycle: { readonly stopping: boolean }
  readonly logger: Logger
  /** Node's own listener for connections. */
  readonly toNode: (socket: Socket) => void
  /** A request that ended before it was whole. */
  readonly onBroken: (error: Error, socket: Socket) => void
  readonly begin: (head: RequestHead) => Exchange
  /** Once for each exchange: when its answer was written, or could not be. */
  readonly end: (exchange: Exchange, head: RequestHead, answering: Answering) => void
}

/** A client that says nothing, or stops in the middle, has so long before node takes it, and times it. */
const PATIENCE_MS = 500
/** So often we look who has said nothing for too long: a timer for each connection would be set anew with every read and write. */
const TICK_MS = 125
/** As node does: a client that was told when we close should not be cut off while its request is on the way. */
const KEEP_ALIVE_GRACE_MS = 1000

/** As node's parser says it. */
const ENDED = Object.assign(new Error('the request ended before it was whole'), { code: 'HPE_INVALID_EOF_STATE' })

export class FastPath {
  readonly options: FastPathOptions
  readonly newReader: NewPlainReader
  readonly keepAlive: string
  readonly #connections = new Set<Connection>()
  /** While there are connections. */
  #ticking: NodeJS.Timeout | null = null
  #ticks = 0

  constructor(options: FastPathOptions) {
    this.options = options
    this.newReader = createPlainReaders(options.routes, options.maxHeaderBytes)
    this.keepAlive = `Connection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(options.keepAliveTimeout / 1000)}`
  }

  take(socket: Socket): void {
    const connection = new Connection(this, socket, () => this.#connections.delete(connection))
    this.#connections.add(connection)
    this.#ticking ??= setInterval(() => this.#tick(), TICK_MS).unref()
  }

  /** The time, as far as silence is measured. */
  get ticks(): number {
    return this.#ticks
  }

  #tick(): void {
    this.#ticks += 1
    for (const connection of this.#connections) connection.giveUpIfSilent()
    if (this.#connections.size > 0) return
    clearInterval(this.#ticking!)
    this.#ticking = null
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
  readonly #onLeave: () => void
  readonly #read: ReadPlainRequest
  /** A part of a request. */
  #held: Buffer | null = null
  #isBusy = false
  #hasEnded = false
  /** Had its last answer: what was sent behind that request is not looked at (RFC 9112, 9.6). */
  #isClosing = false
  /** For how long it may say nothing, and at which tick of the front's that is over. */
  #patienceMs = 0
  #silentAt = 0

  constructor(fastPath: FastPath, socket: Socket, onLeave: () => void) {
    this.#fastPath = fastPath
    this.socket = socket
    this.#onLeave = onLeave
    this.#read = fastPath.newReader(socket)
    socket.on('data', this.#onData).on('end', this.#onEnd).on('error', this.#onError)
    socket.on('close', this.#onClose)
    this.#expectWithin(PATIENCE_MS)
  }

  /** A request under way takes as long as it takes. */
  giveUpIfSilent(): void {
    if (this.#isBusy || this.#fastPath.ticks < this.#silentAt) return
    if (this.#patienceMs === PATIENCE_MS && !this.#isClosing) {
      const held = this.#held
      this.#held = null
      this.#giveToNode(held)
    } else {
      this.socket.destroy()
    }
  }

  closeIfIdle(): void {
    if (!this.#isBusy && !this.#isClosing && this.#held === null) this.socket.destroy()
  }

  /** Writes the answer of the request under way. False if the client is gone. */
  write(text: string, isLast: boolean): boolean {
    const { socket } = this
    this.#isBusy = false
    if (socket.destroyed || !socket.writable) return false
    socket.write(text)
    // The last one, too: it has to be read.
    this.#expectWithin(this.#fastPath.options.keepAliveTimeout + KEEP_ALIVE_GRACE_MS)
    if (isLast || this.#hasEnded) {
      this.#isClosing = true
      socket.destroySoon()
      return true
    }
    // With what was sent ahead of the answer.
    if (socket.isPaused()) socket.resume()
    return true
  }

  readonly #onData = (chunk: Buffer): void => {
    if (this.#isClosing) return
    if (this.#isBusy) {
      // Nobody needs to send ahead. What was on the way goes back, so that the end of the stream stays behind it; no more is read.
      this.socket.pause()
      this.socket.unshift(chunk)
      return
    }
    const bytes = this.#held === null ? chunk : Buffer.concat([this.#held, chunk])
    const isSecondLook = this.#held !== null
    this.#held = null
    this.#look(bytes, isSecondLook)
  }

  #look(bytes: Buffer, isSecondLook: boolean): void {
    const reading = this.#read(bytes)
    if (reading === 'other' || this.socket.writableNeedDrain) {
      this.#giveToNode(bytes)
    } else if (reading !== 'more' && reading.isWhole) {
      this.#run(reading)
    } else if (isSecondLook) {
      this.#giveToNode(bytes)
    } else {
      this.#held = bytes
      this.#expectWithin(PATIENCE_MS)
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

  #giveToNode(bytes: Buffer | null): void {
    const { socket } = this
    this.#leave()
    socket.pause()
    if (bytes !== null) socket.unshift(bytes)
    this.#fastPath.options.toNode(socket)
    socket.resume()
  }

  #leave(): void {
    const { socket } = this
    socket.off('data', this.#onData).off('end', this.#onEnd).off('error', this.#onError)
    socket.off('close', this.#onClose)
    this.#onLeave()
  }

  readonly #onEnd = (): void => {
    this.#hasEnded = true
    if (this.#isBusy) return
    if (this.#held === null) {
      this.socket.end()
      return
    }
    this.#noteLost()
    this.#held = null
    this.#isClosing = true
    this.#fastPath.options.onBroken(ENDED, this.socket)
  }

  readonly #onError = (): void => {
    this.socket.destroy()
  }

  readonly #onClose = (): void => {
    this.#onLeave()
    if (!this.#isBusy) this.#noteLost()
  }

  /** Who leaves in the middle of a request leaves a line in the log, as with node. */
  #noteLost(): void {
    const { options } = this.#fastPath
    const reading = this.#held === null ? 'other' : this.#read(this.#held)
    if (typeof reading === 'string') return
    const exchange = options.begin(reading.head)
    exchange.route = reading.route.path
    options.end(exchange, reading.head, { status: null, isOut: false })
  }

  #expectWithin(ms: number): void {
    this.#patienceMs = ms
    // The next tick may be a moment away, and counts as none.
    this.#silentAt = this.#fastPath.ticks + 1 + Math.ceil(ms / TICK_MS)
  }
}

/** A plain request as the intake handler sees it. */
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

  /** Whole, and as long as was declared: the handler has checked that length. */
  readBody(): Collected {
    return { bytes: this.#body, state: 'whole' }
  }

  peekBody(maxBytes: number): Buffer {
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
    const isOut = this.#connection.write(text, isLast)
    end(exchange, head, { status: isOut ? answer.status : null, isOut })
  }
}

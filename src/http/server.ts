// The HTTP server: a server of node:http, or of node:https with a certificate, with its timeouts and limits; the fast path for plain
// intake requests in front of it; the dispatch to handlers; and a stop that lets open requests finish.

import { once } from 'node:events'
import http, { type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import net, { type AddressInfo, type Socket } from 'node:net'
import { setImmediate, setTimeout as pause } from 'node:timers/promises'
import type { Problem } from '../model/errors.ts'
import { newUuid } from '../runtime/id.ts'
import type { KeyPairFiles } from '../runtime/key-pair.ts'
import type { Service } from '../runtime/service.ts'
import type { Tracing } from '../runtime/tracing.ts'
import { TurnQueue } from '../runtime/turn-queue.ts'
import type { Answered } from '../runtime/service-metrics.ts'
import { createAccessLog, type LogRequest, type SentAnswer } from './access-log.ts'
import { type ControlPlaneOptions, createControlPlane } from './control-plane.ts'
import { beginExchange, Exchange } from './exchange.ts'
import { type Handler, runHandler } from './handler.ts'
import { answerProblem, type IntakeCall, nodeCall } from './intake-call.ts'
import type { IntakeHandler } from './intake-handler.ts'
import { invalidRequest } from './problem.ts'
import type { Route } from './routes.ts'
import { sendProblem } from './wire/answer.ts'
import { createClientErrorHandler, rawAnswer } from './wire/client-error.ts'
import { AddressShares, TOO_MANY_OPEN } from './wire/address-shares.ts'
import { type ClientAddress, createClientAddress, type ForwardedHeader } from './wire/client-address.ts'
import { FastPath } from './wire/fast-path.ts'
import { pathOf, type RequestHead } from './wire/head.ts'
import { hostProblem } from './wire/host.ts'
import { setOpenAnswer } from './wire/open-answer.ts'
import { SerialRequests, serialRequests } from './wire/serial-requests.ts'
import { Tls } from './wire/tls.ts'

export interface HttpServerOptions
  extends Omit<ControlPlaneOptions, 'intakeHandler' | 'serverFactory' | 'clientErrorHandler'> {
  readonly host: string
  readonly port: number
  /** A listening socket in place of host and port; null: it makes its own. */
  readonly listenFd: number | null
  /** Null for plain HTTP. */
  readonly tls: KeyPairFiles | null
  readonly headersTimeout: number
  readonly requestTimeout: number
  readonly keepAliveTimeout: number
  readonly maxHeaderBytes: number
  readonly maxHeaders: number
  readonly maxConnections: number
  readonly connectionsPerAddress: number
  readonly forwardedHeader: ForwardedHeader
  readonly stopTimeout: number
  readonly remoteAddr: 'full' | 'truncated' | 'off'
  readonly logRequests: number
  readonly logSlow: number
  readonly intakeHandler: IntakeHandler
  /** Null: requests are not traced. */
  readonly tracing: Tracing | null
  /** Called after each answer, or when the client left without one. */
  readonly onAnswered: (answered: Answered) => void
}

/** How often Node checks timeouts. Short, because Node closes all timed-out connections in one turn of the event loop. */
const CHECK_CONNECTIONS_EVERY_MS = 100
/** Time for a client that sent CONNECT to read the answer. */
const CONNECT_LINGER_MS = 1000
const CLOSE_IDLE_EVERY_MS = 50
/** A request that is on its way when an idle connection is closed would be lost: until this is over, connections in use close after
 * an answer that says so. */
const LINGER_MS = 1000
/** Turns of the event loop that a stop waits for one without a new connection. */
const MAX_TURNS_TO_ACCEPT = 100
/** Connections that the kernel queues before accept. With Node's 511, clients of a burst retry after 1, 3 and 7 s. */
const BACKLOG = 4096
/** As if Node's parser had found that the head is too large. */
const TOO_MANY_HEADERS = Object.assign(new Error('too many headers'), { code: 'HPE_HEADER_OVERFLOW' })

type OnClientError = (error: Error, socket: Socket) => void
type Dispatch = (req: IncomingMessage, res: ServerResponse, awaitsContinue: boolean) => void

export class HttpServer implements Service {
  readonly #options: HttpServerOptions
  readonly #lifecycle = { stopping: false }
  readonly #logExchange: LogRequest
  readonly #addressOf: ClientAddress
  readonly #shares: AddressShares
  readonly #turns = new TurnQueue()
  readonly #intakeRoutes: ReadonlyMap<string, Route>
  #server: Server | null = null
  #fastPath: FastPath | null = null
  #tls: Tls | null = null
  #stopping: Promise<void> | null = null
  #accepted = 0

  constructor(options: HttpServerOptions) {
    this.#options = options
    this.#logExchange = createAccessLog(options)
    this.#addressOf = createClientAddress(options.trustedProxies, options.forwardedHeader)
    this.#shares = new AddressShares(options.connectionsPerAddress, options.trustedProxies)
    this.#intakeRoutes = intakeRoutesOf(options.routes)
  }

  async start(): Promise<void> {
    const { host, port, listenFd, tls, headersTimeout, logger } = this.#options
    const { clock } = this.#options.auth
    if (tls) this.#tls = new Tls({ files: tls, handshakeTimeout: headersTimeout, clock, logger })
    const intakeHandler: Handler = (...request) => this.#options.intakeHandler(nodeCall(...request))
    const onClientError = createClientErrorHandler(logger)
    let server: Server | undefined
    const fastify = createControlPlane({
      ...this.#options,
      intakeHandler,
      clientErrorHandler: onClientError,
      serverFactory: (fastifyHandler) => {
        server = this.#createServer(this.#createDispatch(intakeHandler, fastifyHandler, onClientError))
        return server
      },
    })
    await fastify.ready()
    this.#server = server!
    this.#fastPath = this.#installFastPath(server!, onClientError)
    const where = listenFd === null ? { host, port } : { fd: listenFd }
    // With a descriptor, Node takes the backlog as an argument only.
    await once(server!.listen(where, BACKLOG), 'listening')
    if (typeof server!.address() !== 'object' || server!.address() === null)
      throw Object.assign(new Error('not a TCP socket'), { code: 'ENOTSUP' })
    this.#tls?.start()
  }

  /** The URL it listens at. */
  get address(): string {
    const { address, family, port } = this.#server!.address() as AddressInfo
    return `${this.#tls ? 'https' : 'http'}://${family === 'IPv6' ? `[${address}]` : address}:${port}`
  }

  /** When the certificate expires, in ms; null without TLS. */
  get certificateExpiresAt(): number | null {
    return this.#tls?.expiresAt ?? null
  }

  /** Somebody takes the requests that come after this server closes its port: another node behind the proxy, or the next process. */
  get #hasSuccessor(): boolean {
    return this.#options.trustedProxies.length > 0 || this.#options.listenFd !== null
  }

  /** Stops accepting, lets open requests finish, and closes all connections after the timeout. */
  stop(): Promise<void> {
    this.#stopping ??= this.#drain()
    return this.#stopping
  }

  async #drain(): Promise<void> {
    const server = this.#server
    if (!server) return
    await this.#untilAllAccepted()
    this.#lifecycle.stopping = true
    // Not http's own close(), which closes idle connections at once; with it, timeouts are no longer enforced.
    const closed = new Promise<void>((resolve) => net.Server.prototype.close.call(server, () => resolve()))
    await this.#tls?.stop()
    const closeIdle = () => {
      this.#tls?.closeHandshakes()
      server.closeIdleConnections()
      this.#fastPath?.closeIdle()
    }
    const closeAll = () => {
      server.closeAllConnections()
      this.#fastPath?.closeAll()
    }
    const deadline = setTimeout(closeAll, this.#options.stopTimeout)
    if (this.#hasSuccessor) await Promise.race([closed, pause(LINGER_MS, undefined, { ref: false })])
    const idle = setInterval(closeIdle, CLOSE_IDLE_EVERY_MS)
    closeIdle()
    await closed
    clearInterval(idle)
    clearTimeout(deadline)
    // Ends the timer of http.
    server.close()
  }

  /** Closing the port resets connections that wait in its queue, of which the event loop accepts one in a turn. */
  async #untilAllAccepted(): Promise<void> {
    // The rest of this turn does not look at the port.
    await setImmediate()
    for (let turns = 0; turns < MAX_TURNS_TO_ACCEPT; turns += 1) {
      const before = this.#accepted
      await setImmediate()
      if (this.#accepted === before) return
    }
  }

  #createServer(dispatch: Dispatch): Server {
    const { headersTimeout, requestTimeout, keepAliveTimeout, maxHeaderBytes, maxConnections } = this.#options
    const options = {
      headersTimeout,
      requestTimeout,
      keepAliveTimeout,
      connectionsCheckingInterval: Math.min(CHECK_CONNECTIONS_EVERY_MS, headersTimeout),
      maxHeaderSize: maxHeaderBytes,
      // Node would answer a missing Host with an empty body; framingProblem() answers instead.
      requireHostHeader: false,
    }
    const onRequest = (req: IncomingMessage, res: ServerResponse) => dispatch(req, res, false)
    const server = this.#tls?.createServer(options, onRequest) ?? http.createServer(options, onRequest)
    server.maxConnections = maxConnections
    // Closes a connection whose client neither sends nor reads.
    server.timeout = 2 * Math.max(requestTimeout, keepAliveTimeout)
    // A client may half-close after its request and still gets the answer.
    ;(server as Server & { httpAllowHalfOpen: boolean }).httpAllowHalfOpen = true
    // Node drops further ones silently; #createDispatch() refuses a request with one more.
    server.maxHeadersCount = this.#options.maxHeaders + 1
    server.on('checkContinue', (req, res) => dispatch(req, res, true))
    // An empty Expect expects nothing; dispatch checks other values.
    server.on('checkExpectation', (req, res) => dispatch(req, res, req.headers.expect?.trim() !== ''))
    server.on('connect', (req) => refuseTunnel(req.socket))
    return server
  }

  /** Connections go to the fast path first, which passes others to Node's own listeners. */
  #installFastPath(server: Server, onClientError: OnClientError): FastPath {
    const { intakeHandler, trustedProxies } = this.#options
    const listeners = server.listeners(this.#tls ? 'secureConnection' : 'connection')
    const turnsOf = (socket: Socket) => this.#turns.of(this.#shares.holderOf(socket))
    const fastPath = new FastPath({
      routes: this.#intakeRoutes,
      handler: trustedProxies.length === 0 ? intakeHandler : (call) => this.#runShared(call),
      maxHeaderBytes: this.#options.maxHeaderBytes,
      maxHeaders: this.#options.maxHeaders,
      keepAliveTimeout: this.#options.keepAliveTimeout,
      lifecycle: this.#lifecycle,
      turnsOf,
      logger: this.#options.logger,
      passToNode: (socket, bytes) => {
        const attach = () => {
          for (const listener of listeners) listener.call(server, socket)
        }
        new SerialRequests(socket, turnsOf(socket), attach).receive(bytes)
      },
      onClientError,
      begin: (head) => {
        const exchange = new Exchange(this.#lifecycle)
        this.#identify(exchange, head)
        return exchange
      },
      end: (exchange, head, answer) => this.#end(exchange, head, answer),
    })
    const accept = (socket: Socket) => fastPath.accept(socket)
    const begin = this.#tls?.install(server, accept) ?? accept
    server.removeAllListeners('connection').on('connection', (socket: Socket) => {
      this.#accepted += 1
      if (this.#shares.admitConnection(socket)) begin(socket)
      else socket.destroy()
    })
    return fastPath
  }

  async #runShared(call: IntakeCall): Promise<void> {
    const release = this.#shares.admitRequest(call.head.socket, call.exchange.address)
    if (!release) return answerProblem(call, TOO_MANY_OPEN)
    try {
      await this.#options.intakeHandler(call)
    } finally {
      release()
    }
  }

  #createDispatch(
    intakeHandler: Handler,
    fastifyHandler: (req: IncomingMessage, res: ServerResponse) => void,
    onClientError: OnClientError,
  ): Dispatch {
    const { logger, maxHeaders } = this.#options
    return (req, res, awaitsContinue) => {
      if (!serialRequests(req.socket)!.begin(req, res)) {
        req.socket.destroy()
        return
      }
      // After that: otherwise this answer could go out in the place of an earlier request's.
      if (req.rawHeaders.length > 2 * maxHeaders) return onClientError(TOO_MANY_HEADERS, req.socket)
      const exchange = this.#begin(req, res)
      exchange.awaitsContinue = awaitsContinue
      const release = this.#shares.admitRequest(req.socket, exchange.address)
      if (release) res.once('close', release)
      const problem = framingProblem(req) ?? expectationProblem(req) ?? (release ? null : TOO_MANY_OPEN)
      if (problem) return sendProblem(req, res, exchange, problem)
      const route = req.method === 'POST' ? this.#intakeRoutes.get(pathOf(req)) : undefined
      if (!route) return fastifyHandler(req, res)
      exchange.route = route.path
      runHandler(intakeHandler, route, req, res, exchange, logger)
    }
  }

  #begin(req: IncomingMessage, res: ServerResponse): Exchange {
    const exchange = beginExchange(res, this.#lifecycle)
    this.#identify(exchange, req)
    setOpenAnswer(req.socket, res)
    res.once('close', () => {
      setOpenAnswer(req.socket, null)
      this.#end(exchange, req, { status: res.headersSent ? res.statusCode : null, isComplete: res.writableFinished })
    })
    return exchange
  }

  #identify(exchange: Exchange, head: RequestHead): void {
    const { tracing } = this.#options
    exchange.address = this.#addressOf(head)
    if (tracing) {
      const { requestId, startedAt } = exchange
      exchange.traceId = tracing.requestBegan(requestId, startedAt, head.headers.traceparent)
    }
  }

  #end(exchange: Exchange, head: RequestHead, answer: SentAnswer): void {
    const ms = performance.now() - exchange.startedAt
    this.#logExchange(exchange, head, answer, ms)
    const { route, outcome, error, eventId } = exchange
    if (exchange.traceId !== null) {
      const method = head.method ?? ''
      this.#options.tracing?.requestEnded(exchange.requestId, {
        method,
        route,
        status: answer.status,
        error,
        outcome,
        eventId,
      })
    }
    this.#options.onAnswered({ route, status: answer.status, seconds: ms / 1000, outcome, error })
  }
}

function intakeRoutesOf(routes: readonly Route[]): ReadonlyMap<string, Route> {
  const byPath = new Map<string, Route>()
  for (const route of routes) {
    if (route.operation === 'intake') byPath.set(route.path, route).set(`${route.path}/`, route)
  }
  return byPath
}

/** After CONNECT Node neither reads the socket, nor times it out, nor handles its errors. */
function refuseTunnel(socket: Socket): void {
  const problem = invalidRequest('This server is not a proxy. Send the request directly.')
  socket.on('error', () => socket.destroy())
  serialRequests(socket)?.stop()
  socket.setTimeout(CONNECT_LINGER_MS, () => socket.destroy())
  socket.end(rawAnswer(problem, newUuid()))
}

function expectationProblem(req: RequestHead): Problem | null {
  const expected = req.headers.expect?.trim().toLowerCase() ?? ''
  return expected === '' || expected === '100-continue' ? null : { code: 'expectation_failed' }
}

/** Checks of RFC 9112 that Node leaves out: one Host, and a body with unambiguous framing. */
function framingProblem(req: RequestHead): Problem | null {
  if (req.httpVersionMajor !== 1) return invalidRequest('The request is not HTTP/1.1. Send it as HTTP/1.1.')
  const host = hostProblem(req)
  if (host) return host
  const coding = req.headers['transfer-encoding']
  if (coding === undefined) return null
  if (coding.toLowerCase() !== 'chunked')
    return invalidRequest(
      'Transfer-Encoding is not chunked. Send "Transfer-Encoding: chunked"; gzip belongs in Content-Encoding.',
    )
  return req.httpVersionMinor === 0 ? invalidRequest('HTTP/1.0 has no Transfer-Encoding. Send a Content-Length.') : null
}

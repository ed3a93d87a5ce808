// The HTTP server: one node:http server of our own with every timeout and limit set where it works, a front that takes plain
// requests for intake before node sees them, a dispatcher, and a stop that lets what is in flight finish.

import http, { type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Problem } from '../model/errors.ts'
import { newUuid } from '../runtime/id.ts'
import type { Logger } from '../runtime/log.ts'
import type { Service } from '../runtime/service.ts'
import type { Answered } from '../runtime/service-metrics.ts'
import { type Answering, createAccessLog, type LogRequest } from './access-log.ts'
import type { AuthServices } from './authenticate.ts'
import type { ConsoleOptions } from './console/options.ts'
import { createControlPlane } from './control-plane.ts'
import { beginExchange, Exchange } from './exchange.ts'
import { type Handler, runHandler } from './handler.ts'
import type { InboxOptions } from './inbox/options.ts'
import type { ProcessingOperations } from './inbox/processing.ts'
import { createNodeIntakeHandler, type IntakeHandler } from './intake-handler.ts'
import type { Route } from './routes.ts'
import type { LoadShedder } from './load-shedder.ts'
import { sendProblem } from './wire/answer.ts'
import { createClientErrorHandler, finishThenClose, rawAnswer } from './wire/client-error.ts'
import { type ClientAddress, createClientAddress } from './wire/client-address.ts'
import { FastPath } from './wire/fast-path.ts'
import { pathOf, type RequestHead } from './wire/head.ts'
import { hostProblem } from './wire/host.ts'
import { isClosing, pendingAnswers } from './wire/pending-answers.ts'
import type { BodyMemory } from './wire/body-memory.ts'

export interface HttpServerOptions {
  readonly host: string
  readonly port: number
  readonly headersTimeout: number
  readonly requestTimeout: number
  readonly keepAliveTimeout: number
  readonly maxHeaderBytes: number
  readonly maxConnections: number
  readonly stopTimeout: number
  readonly trustedProxies: readonly string[]
  readonly remoteAddr: 'full' | 'truncated' | 'off'
  readonly routes: readonly Route[]
  readonly auth: AuthServices
  readonly loadShedder: LoadShedder
  readonly intakeHandler: IntakeHandler
  readonly bodyMemory: BodyMemory
  readonly inbox: InboxOptions
  readonly streamHandler: Handler
  readonly processing: ProcessingOperations
  readonly console: ConsoleOptions
  readonly readiness: () => Problem | null
  readonly logger: Logger
  /** After each answer, or when the client left without one. */
  readonly onAnswered: (answered: Answered) => void
}

/** How often node looks for requests that are too slow. Often: those it finds are cut off in one go, and everybody else waits. */
const CHECK_CONNECTIONS_EVERY_MS = 100
/** Whoever asked for a tunnel has so long to read the answer. */
const TUNNEL_LINGER_MS = 1000
const CLOSE_IDLE_EVERY_MS = 50
/** Connections that the system holds until we accept them. With node's 511 a burst of new ones is told to try again in 1, 3, 7 s. */
const BACKLOG = 4096

type Dispatch = (req: IncomingMessage, res: ServerResponse, awaitsContinue: boolean) => void

export class HttpServer implements Service {
  readonly #options: HttpServerOptions
  readonly #lifecycle = { stopping: false }
  readonly #logExchange: LogRequest
  readonly #addressOf: ClientAddress
  readonly #intakeRoutes: ReadonlyMap<string, Route>
  #server: Server | null = null
  #fastPath: FastPath | null = null
  #stopping: Promise<void> | null = null

  constructor(options: HttpServerOptions) {
    this.#options = options
    this.#logExchange = createAccessLog(options.logger, options.remoteAddr)
    this.#addressOf = createClientAddress(options.trustedProxies)
    this.#intakeRoutes = intakeRoutesOf(options.routes)
  }

  async start(): Promise<void> {
    const { host, port, logger, bodyMemory } = this.#options
    const intakeHandler = createNodeIntakeHandler(this.#options.intakeHandler, bodyMemory)
    const onBroken = createClientErrorHandler(logger)
    let server: Server | undefined
    const fastify = createControlPlane({
      ...this.#options,
      intakeHandler,
      clientErrorHandler: onBroken,
      serverFactory: (fastifyHandler) => {
        server = this.#createServer(this.#createDispatch(intakeHandler, fastifyHandler))
        return server
      },
    })
    await fastify.ready()
    this.#server = server!
    this.#fastPath = this.#installFastPath(server!, onBroken)
    await new Promise<void>((resolve, reject) => {
      server!.once('error', reject)
      server!.listen({ host, port, backlog: BACKLOG }, () => {
        server!.off('error', reject)
        resolve()
      })
    })
  }

  /** Where it listens, as a URL. */
  get address(): string {
    const { address, family, port } = this.#server!.address() as AddressInfo
    return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`
  }

  /** Takes no new connection, lets open requests finish, and cuts off what is left after the timeout. */
  stop(): Promise<void> {
    this.#stopping ??= this.#drain()
    return this.#stopping
  }

  async #drain(): Promise<void> {
    const server = this.#server
    if (!server) return
    this.#lifecycle.stopping = true
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    // After close() node enforces no timeout and leaves keep-alive sockets to themselves: both are up to us.
    const closeIdle = () => {
      server.closeIdleConnections()
      this.#fastPath?.closeIdle()
    }
    const closeAll = () => {
      server.closeAllConnections()
      this.#fastPath?.closeAll()
    }
    const idle = setInterval(closeIdle, CLOSE_IDLE_EVERY_MS)
    const deadline = setTimeout(closeAll, this.#options.stopTimeout)
    closeIdle()
    await closed
    clearInterval(idle)
    clearTimeout(deadline)
  }

  #createServer(dispatch: Dispatch): Server {
    const { headersTimeout, requestTimeout, keepAliveTimeout, maxHeaderBytes, maxConnections } = this.#options
    const server = http.createServer(
      {
        headersTimeout,
        requestTimeout,
        keepAliveTimeout,
        connectionsCheckingInterval: Math.min(CHECK_CONNECTIONS_EVERY_MS, headersTimeout),
        maxHeaderSize: maxHeaderBytes,
        // Node answers a missing Host with an empty body: we look ourselves.
        requireHostHeader: false,
      },
      (req, res) => dispatch(req, res, false),
    )
    server.maxConnections = maxConnections
    // A client that neither sends nor reads its answers is cut off.
    server.timeout = 2 * Math.max(requestTimeout, keepAliveTimeout)
    // A client may close its side after the request: what was stored for it is still answered.
    ;(server as Server & { httpAllowHalfOpen: boolean }).httpAllowHalfOpen = true
    // Bounded in bytes by maxHeaderSize. A bound in number would drop headers in silence.
    server.maxHeadersCount = 0
    server.on('checkContinue', (req, res) => dispatch(req, res, true))
    // An empty Expect expects nothing; what it may hold else is looked at in dispatch.
    server.on('checkExpectation', (req, res) => dispatch(req, res, req.headers.expect?.trim() !== ''))
    server.on('connect', (_req, socket: Socket) => refuseTunnel(socket))
    return server
  }

  /** Connections come to the front first; it has node's own listeners for those that are not for it. */
  #installFastPath(server: Server, onBroken: (error: Error, socket: Socket) => void): FastPath {
    const listeners = server.listeners('connection')
    const fastPath = new FastPath({
      routes: this.#intakeRoutes,
      handler: this.#options.intakeHandler,
      maxHeaderBytes: this.#options.maxHeaderBytes,
      keepAliveTimeout: this.#options.keepAliveTimeout,
      lifecycle: this.#lifecycle,
      logger: this.#options.logger,
      toNode: (socket) => {
        for (const listener of listeners) listener.call(server, socket)
      },
      onBroken,
      begin: (head) => {
        const exchange = new Exchange(this.#lifecycle)
        exchange.address = this.#addressOf(head)
        return exchange
      },
      end: (exchange, head, answering) => this.#end(exchange, head, answering),
    })
    server.removeAllListeners('connection').on('connection', (socket: Socket) => fastPath.take(socket))
    return fastPath
  }

  #createDispatch(
    intakeHandler: Handler,
    fastifyHandler: (req: IncomingMessage, res: ServerResponse) => void,
  ): Dispatch {
    const { logger } = this.#options
    return (req, res, awaitsContinue) => {
      if (isClosing(req.socket)) {
        req.resume()
        return
      }
      const exchange = this.#begin(req, res)
      exchange.awaitsContinue = awaitsContinue
      const problem = framingProblem(req) ?? expectationProblem(req)
      if (problem) return sendProblem(req, res, exchange, problem)
      const route = req.method === 'POST' ? this.#intakeRoutes.get(pathOf(req)) : undefined
      if (!route) return fastifyHandler(req, res)
      exchange.route = route.path
      runHandler(intakeHandler, route, req, res, exchange, logger)
    }
  }

  #begin(req: IncomingMessage, res: ServerResponse): Exchange {
    const exchange = beginExchange(res, this.#lifecycle)
    exchange.address = this.#addressOf(req)
    pendingAnswers(req.socket).push(res)
    res.once('close', () => {
      const open = pendingAnswers(req.socket)
      open.splice(open.indexOf(res), 1)
      this.#end(exchange, req, { status: res.headersSent ? res.statusCode : null, isOut: res.writableFinished })
    })
    return exchange
  }

  #end(exchange: Exchange, head: RequestHead, answering: Answering): void {
    const ms = performance.now() - exchange.startedAt
    this.#logExchange(exchange, head, answering, ms)
    const { route, outcome, error } = exchange
    this.#options.onAnswered({ route, status: answering.status, seconds: ms / 1000, outcome, error })
  }
}

function intakeRoutesOf(routes: readonly Route[]): ReadonlyMap<string, Route> {
  const byPath = new Map<string, Route>()
  for (const route of routes) {
    if (route.operation === 'intake') byPath.set(route.path, route).set(`${route.path}/`, route)
  }
  return byPath
}

/** After CONNECT the socket is ours alone: node neither reads it, nor times it out, nor minds its errors. */
function refuseTunnel(socket: Socket): void {
  const problem: Problem = {
    code: 'invalid_request',
    message: 'This server is not a proxy. Send the request directly.',
  }
  socket.on('error', () => socket.destroy())
  if (finishThenClose(socket)) return
  socket.setTimeout(TUNNEL_LINGER_MS, () => socket.destroy())
  socket.resume()
  socket.end(rawAnswer(problem, newUuid()))
}

function expectationProblem(req: RequestHead): Problem | null {
  const expected = req.headers.expect?.trim().toLowerCase() ?? ''
  return expected === '' || expected === '100-continue' ? null : { code: 'expectation_failed' }
}

/** What RFC 9112 asks of every request and node lets pass: one Host, and a body framed in a way all agree on. */
function framingProblem(req: RequestHead): Problem | null {
  const complain = (message: string): Problem => ({ code: 'invalid_request', message })
  if (req.httpVersionMajor !== 1) return complain('The request is not HTTP/1.1. Send it as HTTP/1.1.')
  const host = hostProblem(req)
  if (host) return host
  const coding = req.headers['transfer-encoding']
  if (coding === undefined) return null
  if (coding.toLowerCase() !== 'chunked')
    return complain(
      'Transfer-Encoding is not chunked. Send "Transfer-Encoding: chunked"; gzip belongs in Content-Encoding.',
    )
  return req.httpVersionMinor === 0 ? complain('HTTP/1.0 has no Transfer-Encoding. Send a Content-Length.') : null
}

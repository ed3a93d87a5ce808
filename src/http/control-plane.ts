// Routes all requests but those of the intake fast path: Fastify routes by the route table, and the operations answer. Also
// answers unknown paths and methods.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import Fastify, { type FastifyInstance, type FastifyServerFactory } from 'fastify'
import type { SignedIn } from '../auth/sessions.ts'
import type { Problem } from '../model/errors.ts'
import type { Logger } from '../runtime/log.ts'
import { apiDocument } from './api-document.ts'
import { admit, authenticate, type AuthServices } from './authenticate.ts'
import { type Call, callerOf, type Operation } from './call.ts'
import { createConsoleFiles } from './console-files.ts'
import { createConsoleOperations } from './console/operations.ts'
import type { ConsoleOptions } from './console/options.ts'
import { type Exchange, exchangeOf } from './exchange.ts'
import { type Handler, logUnexpected, runHandler } from './handler.ts'
import { createInboxOperations } from './inbox/operations.ts'
import type { InboxOptions } from './inbox/options.ts'
import type { ProcessingOperations } from './inbox/processing.ts'
import { createNearestRoute } from './nearest-route.ts'
import type { Answer } from './problem.ts'
import { remoteAddress } from './remote-address.ts'
import { allowedMethods, type Route, routesOf, withoutTrailingSlash } from './routes.ts'
import type { LoadShedder } from './load-shedder.ts'
import { pingAnswer, testerAnswer, testerToken } from './token-check.ts'
import { JSON_CONTENT, sendAnswer, sendProblem } from './wire/answer.ts'
import { pathOf } from './wire/head.ts'
import { createPublicAddress } from './wire/public-address.ts'

export interface ControlPlaneOptions {
  readonly trustedProxies: readonly string[]
  readonly routes: readonly Route[]
  readonly auth: AuthServices
  readonly loadShedder: LoadShedder
  readonly intakeHandler: Handler
  readonly inbox: InboxOptions
  readonly streamHandler: Handler
  readonly processing: ProcessingOperations
  readonly console: ConsoleOptions
  /** Null when the service is ready. */
  readonly readiness: () => Problem | null
  readonly logger: Logger
  readonly serverFactory: FastifyServerFactory
  readonly clientErrorHandler: (error: Error, socket: Socket) => void
}

const SERVER_WIDE_METHODS = 'GET, HEAD, POST, OPTIONS'
const OK: Answer = { status: 200, headers: { 'Content-Type': JSON_CONTENT }, body: '{"ok":true}' }

export function createControlPlane(options: ControlPlaneOptions): FastifyInstance {
  const { routes, logger } = options
  const operations = createOperations(options)
  const answerUnrouted = createUnroutedAnswer(routes)
  const fastify = Fastify({
    serverFactory: options.serverFactory,
    clientErrorHandler: options.clientErrorHandler,
    // Otherwise Fastify answers 503 without a body while closing; requests that arrived are still answered here.
    return503OnClosing: false,
    exposeHeadRoutes: false,
    // An id that is too long is unknown like any other; the limit of the request line bounds it.
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: Number.MAX_SAFE_INTEGER },
    frameworkErrors: (error, request, reply) => {
      reply.hijack()
      sendProblem(request.raw, reply.raw, exchangeOf(reply.raw), problemOf(error, logger))
    },
  })
  // No body parser of Fastify runs: the operations read their bodies themselves.
  for (const route of routes) {
    fastify.route({
      method: route.method === 'GET' ? ['GET', 'HEAD'] : [route.method],
      url: route.isOpen ? route.path.replace(/\{\w+\}$/, '*') : route.path.replaceAll(/\{(\w+)\}/g, ':$1'),
      onRequest: (request, reply) => {
        reply.hijack()
        const params = request.params as Call['params']
        // The router matches an empty part, as in a path with two slashes in a row: that path is unknown.
        const parts = Object.values(params).flatMap((value) => (route.isOpen ? value.split('/') : [value]))
        if (parts.includes('')) return answerUnrouted(request.raw, reply.raw)
        const exchange = exchangeOf(reply.raw)
        exchange.route = route.path
        runHandler(handlerOf(options, operations, route, params), route, request.raw, reply.raw, exchange, logger)
      },
      handler: () => {},
    })
  }
  // In a hook, because Fastify parses a body before its not-found handler, and path and method come before the body.
  fastify.addHook('onRequest', (request, reply, done) => {
    if (!request.is404) return done()
    reply.hijack()
    answerUnrouted(request.raw, reply.raw)
  })
  fastify.setErrorHandler((error, request, reply) => {
    reply.hijack()
    sendProblem(request.raw, reply.raw, exchangeOf(reply.raw), problemOf(error, logger))
  })
  return fastify
}

function handlerOf(
  options: ControlPlaneOptions,
  operations: Operations,
  route: Route,
  params: Call['params'],
): Handler {
  if (route.operation === 'intake') return options.intakeHandler
  if (route.operation === 'stream') return options.streamHandler
  return answering(options, operations[route.operation], params)
}

type Operations = Record<Exclude<Route['operation'], 'intake' | 'stream'>, Operation>

function createOperations(options: ControlPlaneOptions): Operations {
  const { auth } = options
  const files = createConsoleFiles()
  const publicAddress = createPublicAddress(options.trustedProxies)
  return {
    ...createInboxOperations(options.inbox),
    ping: (call) => pingAnswer(callerOf(call)),
    tester: async ({ req, exchange, route }) => {
      const found = testerToken(req)
      if ('problem' in found) return found.problem
      return (await admit(auth, route, found, exchange)) ?? testerAnswer(exchange.principal!)
    },
    ...options.processing,
    ...createConsoleOperations(options.console),
    consolePage: ({ req }) => files.page(req),
    consoleFile: ({ req, params }) => files.file(req, params['*'] ?? ''),
    livez: () => OK,
    readyz: () => options.readiness() ?? OK,
    openapiYaml: () => apiDocument().yaml,
    openapiJson: () => apiDocument().json,
    docs: ({ req }) => apiDocument().page(publicAddress(req)),
  }
}

function answering(options: ControlPlaneOptions, operation: Operation, params: Call['params']): Handler {
  const { auth, loadShedder } = options
  return async (route, req, res, exchange) => {
    const asksForToken = route.scope !== 'public' && route.operation !== 'tester'
    const refused = asksForToken ? await authenticate(auth, route, req, exchange) : null
    if (refused) return sendProblem(req, res, exchange, refused)
    const release = loadShedder.acquire(route, req, exchange)
    if (typeof release !== 'function') return sendProblem(req, res, exchange, release)
    if (exchange.awaitsContinue) {
      res.writeContinue()
      exchange.awaitsContinue = false
    }
    try {
      const result = await operation({ req, exchange, route, params })
      if ('status' in result && exchange.operator)
        await recordAudit(options.console, exchange.operator, route, exchange, params)
      if ('status' in result) sendAnswer(req, res, exchange, result)
      else sendProblem(req, res, exchange, result)
    } finally {
      release()
    }
  }
}

/** Writes the audit entry before the operator is answered. */
async function recordAudit(
  { audit, remoteAddr }: ConsoleOptions,
  { operator }: SignedIn,
  route: Route,
  exchange: Exchange,
  params: Call['params'],
): Promise<void> {
  if (route.audit === undefined || exchange.isNoOp) return
  const { requestId, principal: tenant } = exchange
  const target = exchange.auditTarget ?? Object.values(params)[0] ?? null
  const address = remoteAddress(exchange.address, remoteAddr)
  await audit({ action: route.audit, operator, tenant, target, origin: { requestId, address } })
}

/** Unknown path: 404 with the nearest route. Known path: OPTIONS lists the methods, any other method is 405. */
function createUnroutedAnswer(routes: readonly Route[]): (req: IncomingMessage, res: ServerResponse) => void {
  const nearestRoute = createNearestRoute(routes)
  return (req, res) => {
    const exchange = exchangeOf(res)
    const path = withoutTrailingSlash(decodedPath(pathOf(req)))
    const allow = path === '*' ? SERVER_WIDE_METHODS : allowedMethods(routes, path)
    exchange.route = routesOf(routes, path)[0]?.path ?? null
    if (allow === null) sendProblem(req, res, exchange, unknownPath(nearestRoute(req.method ?? 'GET', path)))
    else if (req.method !== 'OPTIONS') sendProblem(req, res, exchange, wrongMethod(allow))
    else sendAnswer(req, res, exchange, { status: 204, headers: { Allow: allow }, body: '' })
  }
}

function unknownPath(nearest: string | null): Problem {
  const suggestion = nearest === null ? '' : ` Did you mean ${nearest}?`
  return { code: 'not_found', message: `There is no such path.${suggestion} /docs lists every address.` }
}

function wrongMethod(allow: string): Problem {
  return { code: 'method_not_allowed', allow, message: `This address does not take that method. Use one of ${allow}.` }
}

/** The path as the router sees it: without scheme and host, decoded except for separators (`%2f` is not a slash). */
function decodedPath(target: string): string {
  const path = target.replace(/^https?:\/\/[^/]*/i, '')
  try {
    return decodeURI(path)
  } catch {
    return path
  }
}

function problemOf(error: unknown, logger: Logger): Problem {
  const status = (error as { statusCode?: number }).statusCode ?? 500
  if (status >= 400 && status < 500) {
    return {
      code: 'invalid_request',
      message: 'The path of the request cannot be decoded. Percent-encode it correctly and send it again.',
    }
  }
  logUnexpected(logger, error, null)
  return { code: 'internal_error' }
}

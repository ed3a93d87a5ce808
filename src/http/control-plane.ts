// Routes requests that are not for intake: Fastify matches the route table, and the route's operation answers. Also answers
// unknown paths and methods.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import Fastify, { type FastifyInstance, type FastifyServerFactory } from 'fastify'
import type { Problem } from '../model/errors.ts'
import type { Logger } from '../runtime/log.ts'
import { apiDocument } from './api-document.ts'
import { admit, authenticate, type AuthServices } from './authenticate.ts'
import { type Call, callerOf, type Operation } from './call.ts'
import { createConsoleFiles } from './console-files.ts'
import { auditOperations } from './console/audit.ts'
import type { ConsoleOptions } from './console/options.ts'
import { overviewOperations } from './console/overview.ts'
import { refusalOperations } from './console/refusals.ts'
import { sessionOperations } from './console/session.ts'
import { tenantOperations } from './console/tenants.ts'
import { hookOperations } from './console/hooks.ts'
import { tokenOperations } from './console/tokens.ts'
import { type Exchange, exchangeOf } from './exchange.ts'
import { createFrontDoor } from './front-door.ts'
import { type Handler, logUnexpected, runHandler } from './handler.ts'
import { conversationOperations } from './inbox/conversations.ts'
import { erasureOperations } from './inbox/erasures.ts'
import { eventOperations } from './inbox/events.ts'
import { listOperations } from './inbox/lists.ts'
import type { HookHandler } from './hook-handler.ts'
import { nodeCall } from './intake-call.ts'
import type { InboxOptions } from './inbox/options.ts'
import type { ProcessingOperations } from './inbox/processing.ts'
import { createNearestRoute } from './nearest-route.ts'
import { type Answer, invalidRequest } from './problem.ts'
import { remoteAddress } from './remote-address.ts'
import { allowedMethods, type Route, routesOf, withoutTrailingSlash } from './routes.ts'
import type { LoadShedder } from './load-shedder.ts'
import { orUnavailable } from './unavailable.ts'
import { pingAnswer, testerAnswer, testerToken } from './token-check.ts'
import { JSON_CONTENT, sendAnswer, sendProblem } from './wire/answer.ts'
import { collectBody } from './wire/body.ts'
import { pathOf } from './wire/head.ts'
import { createPublicAddress } from './wire/public-address.ts'

export interface ControlPlaneOptions {
  readonly trustedProxies: readonly string[]
  readonly routes: readonly Route[]
  readonly auth: AuthServices
  readonly loadShedder: LoadShedder
  readonly intakeHandler: Handler
  readonly hookHandler: HookHandler
  readonly inbox: InboxOptions
  readonly streamHandler: Handler
  readonly processing: ProcessingOperations
  readonly console: ConsoleOptions
  /** Null when the service is ready. `address`: of the client that asks. */
  readonly readiness: (address: string | undefined) => Problem | null
  readonly logger: Logger
  readonly serverFactory: FastifyServerFactory
  readonly clientErrorHandler: (error: Error, socket: Socket) => void
}

const SERVER_WIDE_METHODS = 'GET, HEAD, POST, OPTIONS'
const OK: Answer = { status: 200, headers: { 'Content-Type': JSON_CONTENT }, body: '{"ok":true}' }

export function createControlPlane(options: ControlPlaneOptions): FastifyInstance {
  const { routes, logger } = options
  const operations = createOperations(options)
  const answerUnrouted = createUnroutedAnswer(routes, logger)
  const fastify = Fastify({
    serverFactory: options.serverFactory,
    clientErrorHandler: options.clientErrorHandler,
    // By default Fastify answers 503 without a body while closing; we still answer requests that arrived.
    return503OnClosing: false,
    exposeHeadRoutes: false,
    // The limit of the request line bounds ids; a long one is answered as unknown.
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: Number.MAX_SAFE_INTEGER },
    frameworkErrors: (error, request, reply) => {
      reply.hijack()
      sendProblem(request.raw, reply.raw, exchangeOf(reply.raw), problemOf(error, logger))
    },
  })
  // Operations read bodies themselves; no body parser of Fastify runs.
  for (const route of routes) {
    fastify.route({
      method: route.method === 'GET' ? ['GET', 'HEAD'] : [route.method],
      url: route.isWildcard ? route.path.replace(/\{\w+\}$/, '*') : route.path.replaceAll(/\{(\w+)\}/g, ':$1'),
      onRequest: (request, reply) => {
        reply.hijack()
        const params = request.params as Call['params']
        // Fastify matches empty path parameters, as in `//`; we answer 404.
        const parts = Object.values(params).flatMap((value) => (route.isWildcard ? value.split('/') : [value]))
        if (parts.includes('')) return answerUnrouted(request.raw, reply.raw)
        // It takes `*` and `//` for `/`, too.
        if (route.path === '/' && decodedPath(pathOf(request.raw)) !== '/')
          return answerUnrouted(request.raw, reply.raw)
        const exchange = exchangeOf(reply.raw)
        exchange.route = route.path
        runHandler(handlerOf(options, operations, route, params), route, request.raw, reply.raw, exchange, logger)
      },
      handler: () => {},
    })
  }
  // In a hook, because Fastify parses the body before it calls its not-found handler.
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
  if (route.operation === 'hook') {
    const hookId = params.hook_id ?? ''
    return (...request) => options.hookHandler(nodeCall(...request), hookId)
  }
  return operationHandler(options, operations[route.operation], params)
}

type Operations = Record<Exclude<Route['operation'], 'intake' | 'hook' | 'stream'>, Operation>

function createOperations(options: ControlPlaneOptions): Operations {
  const { auth } = options
  const files = createConsoleFiles()
  const frontDoor = createFrontDoor(options.routes)
  const publicAddress = createPublicAddress(options.trustedProxies)
  return {
    ...listOperations(options.inbox),
    ...eventOperations(options.inbox),
    ...conversationOperations(options.inbox),
    ...erasureOperations(options.inbox),
    ...options.processing,
    ...sessionOperations(options.console),
    ...tenantOperations(options.console),
    ...overviewOperations(options.console),
    ...tokenOperations(options.console),
    ...hookOperations(options.console),
    ...refusalOperations(options.console),
    ...auditOperations(options.console),
    ping: (call) => pingAnswer(callerOf(call)),
    tester: async ({ req, exchange, route }) => {
      const found = testerToken(req)
      if ('problem' in found) return found.problem
      return (await admit(auth, route, found, exchange)) ?? testerAnswer(exchange.principal!)
    },
    frontDoor: ({ req }) => frontDoor(req),
    consolePage: ({ req }) => files.page(req),
    consoleFile: ({ req, params }) => files.file(req, params['*'] ?? ''),
    livez: () => OK,
    readyz: ({ exchange }) => options.readiness(exchange.address) ?? OK,
    openapiYaml: async ({ req }) => (await apiDocument()).yaml.answer(req),
    openapiJson: async ({ req }) => (await apiDocument()).json.answer(req),
    docs: async ({ req }) => (await apiDocument()).page(req, publicAddress(req)),
  }
}

function operationHandler(options: ControlPlaneOptions, operation: Operation, params: Call['params']): Handler {
  const { auth, loadShedder } = options
  return async (route, req, res, exchange) => {
    const needsCaller = route.scope !== 'public' && route.operation !== 'tester'
    const refused = needsCaller ? await authenticate(auth, route, req, exchange) : null
    if (refused) return sendProblem(req, res, exchange, refused)
    const release = loadShedder.acquire(route, exchange)
    if (typeof release !== 'function') return sendProblem(req, res, exchange, release)
    if (exchange.awaitsContinue) {
      res.writeContinue()
      exchange.awaitsContinue = false
    }
    try {
      const result = await orUnavailable(() => operation({ req, exchange, route, params }))
      if ('status' in result) await recordAudit(options.console, route, exchange, params)
      if ('status' in result) sendAnswer(req, res, exchange, result)
      else sendProblem(req, res, exchange, result)
    } finally {
      release()
    }
  }
}

/** Resolves once the audit entry is written; the answer follows. */
async function recordAudit(
  { audit, remoteAddr }: ConsoleOptions,
  route: Route,
  exchange: Exchange,
  params: Call['params'],
): Promise<void> {
  const operator = exchange.operator?.operator ?? tokenOf(route, exchange)
  if (route.audit === undefined || exchange.isNoOp || operator === null) return
  const { requestId, principal: tenant } = exchange
  const target = exchange.auditTarget ?? Object.values(params)[0] ?? null
  const address = remoteAddress(exchange.address, remoteAddr)
  await audit({ action: route.audit, operator, tenant, target, origin: { requestId, address } })
}

/** What a token of the scope `admin` does is recorded as what an operator does. */
function tokenOf({ scope }: Route, { principal }: Exchange): { id: string; name: string } | null {
  return scope === 'admin' && principal ? { id: '', name: `token ${principal.keyId}` } : null
}

/** As much of a chunked body is read before the answer, because broken framing is answered before an unknown path. */
const MAX_FRAMING_BYTES = 64 * 1024

/** Unknown path: 404 with the nearest route. Known path: OPTIONS lists the methods, any other method is 405. */
function createUnroutedAnswer(
  routes: readonly Route[],
  logger: Logger,
): (req: IncomingMessage, res: ServerResponse) => void {
  const nearestRoute = createNearestRoute(routes)
  const answer = (req: IncomingMessage, res: ServerResponse) => {
    const exchange = exchangeOf(res)
    const path = withoutTrailingSlash(decodedPath(pathOf(req)))
    const allow = path === '*' ? SERVER_WIDE_METHODS : allowedMethods(routes, path)
    exchange.route = routesOf(routes, path)[0]?.path ?? null
    if (allow === null) sendProblem(req, res, exchange, unknownPath(nearestRoute(req.method ?? 'GET', path)))
    else if (req.method !== 'OPTIONS') sendProblem(req, res, exchange, wrongMethod(allow))
    else sendAnswer(req, res, exchange, { status: 204, headers: { Allow: allow }, body: '' })
  }
  return (req, res) => {
    const hasFraming =
      req.headers['transfer-encoding'] !== undefined && req.method !== 'HEAD' && req.method !== 'OPTIONS'
    if (!hasFraming || exchangeOf(res).awaitsContinue) return answer(req, res)
    collectBody(req, MAX_FRAMING_BYTES)
      .then(() => answer(req, res))
      .catch((error: unknown) => logUnexpected(logger, error, exchangeOf(res)))
  }
}

function unknownPath(nearest: string | null): Problem {
  const suggestion = nearest === null ? '' : ` Did you mean ${nearest}?`
  return { code: 'not_found', message: `There is no such path.${suggestion} /docs lists every address.` }
}

function wrongMethod(allow: string): Problem {
  return { code: 'method_not_allowed', allow, message: `This address does not take that method. Use one of ${allow}.` }
}

/** The path as Fastify's router sees it: without scheme and host, decoded except for separators (`%2f` is not a slash). */
function decodedPath(target: string): string {
  const path = target.replace(/^https?:\/\/[^/]*/i, '') || '/'
  try {
    return decodeURI(path)
  } catch {
    return path
  }
}

function problemOf(error: unknown, logger: Logger): Problem {
  const status = (error as { statusCode?: number }).statusCode ?? 500
  if (status >= 400 && status < 500) {
    return invalidRequest('The path of the request cannot be decoded. Percent-encode it correctly and send it again.')
  }
  logUnexpected(logger, error, null)
  return { code: 'internal_error' }
}

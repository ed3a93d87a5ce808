// The route table: every path of the service, the scope or role it requires, and the operation that answers. Tests compare
// api/openapi.yaml and the documentation with it.

import type { ScopeRule } from '../auth/scope.ts'
import type { AuditAction, OperatorRole } from '../model/operator.ts'

export interface Route {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** As in api/openapi.yaml: `{id}` is a path parameter. */
  readonly path: string
  readonly scope: ScopeRule
  /** The least role of an operator with a session. `none`: the route takes no session. */
  readonly operator: OperatorRole | 'none'
  readonly operation: OperationName
  /** `none`: an operator does not name a tenant. */
  readonly tenant?: 'none'
  /** The action that the audit log records for an operator. */
  readonly audit?: AuditAction
  /** The last path parameter matches the whole rest of the path. */
  readonly isWildcard?: true
}

/** `intake`, `hook` and `stream` have their own handlers; `tester` also takes a token from the query. */
export type OperationName =
  | 'ping'
  | 'tester'
  | 'intake'
  | 'hook'
  // Reads of the inbox, in http/inbox/.
  | 'listEvents'
  | 'showEvent'
  | 'eventPayload'
  | 'listRevisions'
  | 'promoteRevision'
  | 'listConversations'
  | 'showConversation'
  | 'listConversationEvents'
  | 'listRefusals'
  | 'stream'
  // Operations of processors, in http/inbox/.
  | 'claim'
  | 'ack'
  | 'extend'
  | 'release'
  | 'requeue'
  | 'requeueEvent'
  | 'eventHistory'
  | 'subscriptions'
  | 'createSubscription'
  | 'deleteSubscription'
  // Endpoints of subscriptions, in http/inbox/.
  | 'listEndpoints'
  | 'showEndpoint'
  | 'setEndpoint'
  | 'removeEndpoint'
  | 'endpointAttempts'
  | 'pauseEndpoint'
  | 'resumeEndpoint'
  | 'rotateEndpointSecret'
  | 'testEndpoint'
  | 'replayToEndpoint'
  | 'eraseEvent'
  | 'erase'
  // Operations of the console, in http/console/.
  | 'signIn'
  | 'showSession'
  | 'signOut'
  | 'listTenants'
  | 'overview'
  | 'listTokens'
  | 'createToken'
  | 'rotateToken'
  | 'disableToken'
  | 'enableToken'
  | 'showRefusal'
  | 'acceptRefusal'
  | 'sendTestEvent'
  | 'listAudit'
  | 'listHooks'
  | 'createHook'
  | 'showHook'
  | 'rotateHook'
  | 'disableHook'
  | 'enableHook'
  | 'hookDeliveries'
  | 'sendHookSample'
  | 'listRecipes'
  // Front door, console files, health checks and documents.
  | 'frontDoor'
  | 'consolePage'
  | 'consoleFile'
  | 'livez'
  | 'readyz'
  | 'openapiYaml'
  | 'openapiJson'
  | 'docs'

type Method = Route['method']

function publicRoute(method: Method, path: string, operation: OperationName): Route {
  return { method, path, scope: 'public', operator: 'none', operation }
}

/** For tokens of the scope, not for sessions. */
function tokenRoute(method: Method, path: string, operation: OperationName, scope: ScopeRule): Route {
  return { method, path, scope, operator: 'none', operation }
}

/** For tokens that process, and for operators with at least the role. */
function inboxRoute(
  method: Method,
  path: string,
  operation: OperationName,
  operator: OperatorRole,
  audit?: AuditAction,
): Route {
  return { method, path, scope: 'processor', operator, operation, ...(audit && { audit }) }
}

/** For operators with at least the role. */
function consoleRoute(...row: Parameters<typeof inboxRoute>): Route {
  return { ...inboxRoute(...row), scope: 'operator' }
}

export const ROUTES: readonly Route[] = [
  tokenRoute('GET', '/api/ping', 'ping', 'any'),
  tokenRoute('GET', '/api/inbox-test', 'tester', 'any'),
  tokenRoute('POST', '/v1/inbox/events', 'intake', 'intake'),
  tokenRoute('POST', '/api/inbox', 'intake', 'intake'),
  // Authenticated by its id, and by the signature that its recipe asks for.
  publicRoute('GET', '/v1/hooks/{hook_id}', 'hook'),
  publicRoute('POST', '/v1/hooks/{hook_id}', 'hook'),
  inboxRoute('GET', '/v1/inbox/events', 'listEvents', 'viewer'),
  inboxRoute('GET', '/v1/inbox/events/{id}', 'showEvent', 'viewer'),
  inboxRoute('GET', '/v1/inbox/events/{id}/payload', 'eventPayload', 'viewer'),
  inboxRoute('GET', '/v1/inbox/events/{id}/revisions', 'listRevisions', 'viewer'),
  inboxRoute('POST', '/v1/inbox/events/{id}/promote', 'promoteRevision', 'admin', 'promote'),
  { ...inboxRoute('DELETE', '/v1/inbox/events/{id}', 'eraseEvent', 'admin', 'erase'), scope: 'admin' },
  { ...inboxRoute('POST', '/v1/inbox/erasures', 'erase', 'admin', 'erase'), scope: 'admin' },
  inboxRoute('GET', '/v1/inbox/conversations', 'listConversations', 'viewer'),
  inboxRoute('GET', '/v1/inbox/conversations/{id}', 'showConversation', 'viewer'),
  inboxRoute('GET', '/v1/inbox/conversations/{id}/events', 'listConversationEvents', 'viewer'),
  inboxRoute('GET', '/v1/inbox/refusals', 'listRefusals', 'viewer'),
  inboxRoute('GET', '/v1/inbox/stream', 'stream', 'viewer'),
  tokenRoute('POST', '/v1/inbox/claims', 'claim', 'processor'),
  tokenRoute('POST', '/v1/inbox/claims/ack', 'ack', 'processor'),
  tokenRoute('POST', '/v1/inbox/claims/extend', 'extend', 'processor'),
  tokenRoute('POST', '/v1/inbox/claims/release', 'release', 'processor'),
  inboxRoute('POST', '/v1/inbox/requeue', 'requeue', 'admin', 'requeue'),
  inboxRoute('POST', '/v1/inbox/events/{id}/requeue', 'requeueEvent', 'admin', 'requeue'),
  inboxRoute('GET', '/v1/inbox/events/{id}/history', 'eventHistory', 'viewer'),
  inboxRoute('GET', '/v1/inbox/subscriptions', 'subscriptions', 'viewer'),
  inboxRoute('POST', '/v1/inbox/subscriptions', 'createSubscription', 'admin', 'subscription_create'),
  inboxRoute('DELETE', '/v1/inbox/subscriptions/{name}', 'deleteSubscription', 'admin', 'subscription_delete'),
  inboxRoute('GET', '/v1/inbox/endpoints', 'listEndpoints', 'viewer'),
  inboxRoute('GET', '/v1/inbox/subscriptions/{name}/endpoint', 'showEndpoint', 'viewer'),
  inboxRoute('POST', '/v1/inbox/subscriptions/{name}/endpoint', 'setEndpoint', 'admin', 'endpoint_set'),
  inboxRoute('DELETE', '/v1/inbox/subscriptions/{name}/endpoint', 'removeEndpoint', 'admin', 'endpoint_remove'),
  inboxRoute('GET', '/v1/inbox/subscriptions/{name}/endpoint/attempts', 'endpointAttempts', 'viewer'),
  inboxRoute('POST', '/v1/inbox/subscriptions/{name}/endpoint/pause', 'pauseEndpoint', 'admin', 'endpoint_pause'),
  inboxRoute('POST', '/v1/inbox/subscriptions/{name}/endpoint/resume', 'resumeEndpoint', 'admin', 'endpoint_resume'),
  inboxRoute(
    'POST',
    '/v1/inbox/subscriptions/{name}/endpoint/secret',
    'rotateEndpointSecret',
    'admin',
    'endpoint_rotate',
  ),
  inboxRoute('POST', '/v1/inbox/subscriptions/{name}/endpoint/test', 'testEndpoint', 'admin', 'endpoint_test'),
  inboxRoute('POST', '/v1/inbox/subscriptions/{name}/endpoint/replay', 'replayToEndpoint', 'admin', 'endpoint_replay'),
  publicRoute('POST', '/v1/console/session', 'signIn'),
  { ...consoleRoute('GET', '/v1/console/session', 'showSession', 'viewer'), tenant: 'none' },
  { ...consoleRoute('DELETE', '/v1/console/session', 'signOut', 'viewer'), tenant: 'none' },
  { ...consoleRoute('GET', '/v1/console/tenants', 'listTenants', 'viewer'), tenant: 'none' },
  consoleRoute('GET', '/v1/console/overview', 'overview', 'viewer'),
  consoleRoute('GET', '/v1/console/tokens', 'listTokens', 'viewer'),
  consoleRoute('POST', '/v1/console/tokens', 'createToken', 'admin', 'token_create'),
  consoleRoute('POST', '/v1/console/tokens/{key_id}/rotate', 'rotateToken', 'admin', 'token_rotate'),
  consoleRoute('POST', '/v1/console/tokens/{key_id}/disable', 'disableToken', 'admin', 'token_disable'),
  consoleRoute('POST', '/v1/console/tokens/{key_id}/enable', 'enableToken', 'admin', 'token_enable'),
  consoleRoute('GET', '/v1/console/hooks', 'listHooks', 'viewer'),
  consoleRoute('POST', '/v1/console/hooks', 'createHook', 'admin', 'hook_create'),
  consoleRoute('GET', '/v1/console/hooks/{key_id}', 'showHook', 'viewer'),
  consoleRoute('POST', '/v1/console/hooks/{key_id}/rotate', 'rotateHook', 'admin', 'hook_rotate'),
  consoleRoute('POST', '/v1/console/hooks/{key_id}/disable', 'disableHook', 'admin', 'hook_disable'),
  consoleRoute('POST', '/v1/console/hooks/{key_id}/enable', 'enableHook', 'admin', 'hook_enable'),
  consoleRoute('GET', '/v1/console/hooks/{key_id}/deliveries', 'hookDeliveries', 'viewer'),
  consoleRoute('POST', '/v1/console/hooks/{key_id}/samples', 'sendHookSample', 'admin', 'hook_sample'),
  { ...consoleRoute('GET', '/v1/console/recipes', 'listRecipes', 'viewer'), tenant: 'none' },
  consoleRoute('GET', '/v1/console/refusals/{id}', 'showRefusal', 'viewer'),
  consoleRoute('POST', '/v1/console/refusals/{id}/accept', 'acceptRefusal', 'admin', 'refusal_accept'),
  consoleRoute('POST', '/v1/console/test-events', 'sendTestEvent', 'admin', 'test_event'),
  { ...consoleRoute('GET', '/v1/console/audit', 'listAudit', 'admin'), tenant: 'none' },
  publicRoute('GET', '/', 'frontDoor'),
  publicRoute('GET', '/console', 'consolePage'),
  { ...publicRoute('GET', '/console/{path}', 'consoleFile'), isWildcard: true },
  publicRoute('GET', '/livez', 'livez'),
  publicRoute('GET', '/readyz', 'readyz'),
  publicRoute('GET', '/openapi.yaml', 'openapiYaml'),
  publicRoute('GET', '/openapi.json', 'openapiJson'),
  publicRoute('GET', '/docs', 'docs'),
]

/** The routes of a path, of any method. */
export function routesOf(routes: readonly Route[], path: string): Route[] {
  const parts = path.split('/')
  return routes.filter((route) => {
    const pattern = route.path.split('/')
    const fits = route.isWildcard
      ? pattern.length <= parts.length && !parts.includes('', 1)
      : pattern.length === parts.length
    return fits && pattern.every((part, n) => part === parts[n] || isParameter(part, parts[n]))
  })
}

function isParameter(part: string, given: string | undefined): boolean {
  return part.startsWith('{') && given !== undefined && given !== ''
}

/** Each path once. */
export function pathsOf(routes: readonly Route[]): string[] {
  return [...new Set(routes.map(({ path }) => path))]
}

/** Routes that do not exist while the console is turned off. */
export function isConsoleRoute({ path }: Route): boolean {
  return path.startsWith('/v1/console/') || /^\/console(\/|$)/.test(path)
}

/** The value of Allow for a path, or null if no route has it. */
export function allowedMethods(routes: readonly Route[], path: string): string | null {
  const methods = routesOf(routes, path).map((route) => route.method)
  if (methods.length === 0) return null
  return [
    ...(methods.includes('GET') ? ['GET', 'HEAD'] : []),
    ...(methods.includes('POST') ? ['POST'] : []),
    ...(methods.includes('DELETE') ? ['DELETE'] : []),
    'OPTIONS',
  ].join(', ')
}

/** A path with one trailing slash is the same route. */
export function withoutTrailingSlash(path: string): string {
  return path.length > '//'.length && path.endsWith('/') ? path.slice(0, -1) : path
}

// THE table: every address of the service, what it asks of a token, and which operation answers. The contract in
// api/openapi.yaml, the documentation and the tests of scopes are all held against it.

import type { ScopeRule } from '../auth/scope.ts'
import type { AuditAction, OperatorRole } from '../model/operator.ts'

export interface Route {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** As in the contract: `{id}` stands for one part of the path. */
  readonly path: string
  readonly scope: ScopeRule
  /** The role an operator needs who comes with a session instead of a token. `none`: a session is worth nothing here. */
  readonly operator: OperatorRole | 'none'
  readonly operation: OperationName
  /** `none`: an operator need not say which tenant is meant. */
  readonly tenant?: 'none'
  /** How the audit log calls it when an operator did it. */
  readonly audit?: AuditAction
  /** The last place stands for the whole rest of the path. */
  readonly isOpen?: true
}

/** `intake` and `stream` have handlers of their own; `tester` takes its token from elsewhere. */
export type OperationName =
  | 'ping'
  | 'tester'
  | 'intake'
  | InboxOperationName
  | 'stream'
  | ProcessingOperation
  | ConsoleOperationName
  | 'consolePage'
  | 'consoleFile'
  | 'livez'
  | 'readyz'
  | 'openapiYaml'
  | 'openapiJson'
  | 'docs'

/** Reading the inbox: http/inbox/ answers. */
export type InboxOperationName =
  | 'listEvents'
  | 'showEvent'
  | 'eventPayload'
  | 'listRevisions'
  | 'promoteRevision'
  | 'listConversations'
  | 'showConversation'
  | 'listConversationEvents'
  | 'listRefusals'
/** What processors do. */
export type ProcessingOperation =
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

/** What the console is made of: http/console/ answers. */
export type ConsoleOperationName =
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

export const ROUTES: readonly Route[] = [
  { method: 'GET', path: '/api/ping', scope: 'any', operator: 'none', operation: 'ping' },
  { method: 'GET', path: '/api/inbox-test', scope: 'any', operator: 'none', operation: 'tester' },
  { method: 'POST', path: '/v1/inbox/events', scope: 'intake', operator: 'none', operation: 'intake' },
  { method: 'POST', path: '/api/inbox', scope: 'intake', operator: 'none', operation: 'intake' },
  { method: 'GET', path: '/v1/inbox/events', scope: 'processor', operator: 'viewer', operation: 'listEvents' },
  { method: 'GET', path: '/v1/inbox/events/{id}', scope: 'processor', operator: 'viewer', operation: 'showEvent' },
  {
    method: 'GET',
    path: '/v1/inbox/events/{id}/payload',
    scope: 'processor',
    operator: 'viewer',
    operation: 'eventPayload',
  },
  {
    method: 'GET',
    path: '/v1/inbox/events/{id}/revisions',
    scope: 'processor',
    operator: 'viewer',
    operation: 'listRevisions',
  },
  {
    method: 'POST',
    path: '/v1/inbox/events/{id}/promote',
    scope: 'processor',
    operator: 'admin',
    operation: 'promoteRevision',
    audit: 'promote',
  },
  {
    method: 'GET',
    path: '/v1/inbox/conversations',
    scope: 'processor',
    operator: 'viewer',
    operation: 'listConversations',
  },
  {
    method: 'GET',
    path: '/v1/inbox/conversations/{id}',
    scope: 'processor',
    operator: 'viewer',
    operation: 'showConversation',
  },
  {
    method: 'GET',
    path: '/v1/inbox/conversations/{id}/events',
    scope: 'processor',
    operator: 'viewer',
    operation: 'listConversationEvents',
  },
  { method: 'GET', path: '/v1/inbox/refusals', scope: 'processor', operator: 'viewer', operation: 'listRefusals' },
  { method: 'GET', path: '/v1/inbox/stream', scope: 'processor', operator: 'viewer', operation: 'stream' },
  { method: 'POST', path: '/v1/inbox/claims', scope: 'processor', operator: 'none', operation: 'claim' },
  { method: 'POST', path: '/v1/inbox/claims/ack', scope: 'processor', operator: 'none', operation: 'ack' },
  { method: 'POST', path: '/v1/inbox/claims/extend', scope: 'processor', operator: 'none', operation: 'extend' },
  { method: 'POST', path: '/v1/inbox/claims/release', scope: 'processor', operator: 'none', operation: 'release' },
  {
    method: 'POST',
    path: '/v1/inbox/requeue',
    scope: 'processor',
    operator: 'admin',
    operation: 'requeue',
    audit: 'requeue',
  },
  {
    method: 'POST',
    path: '/v1/inbox/events/{id}/requeue',
    scope: 'processor',
    operator: 'admin',
    operation: 'requeueEvent',
    audit: 'requeue',
  },
  {
    method: 'GET',
    path: '/v1/inbox/events/{id}/history',
    scope: 'processor',
    operator: 'viewer',
    operation: 'eventHistory',
  },
  {
    method: 'GET',
    path: '/v1/inbox/subscriptions',
    scope: 'processor',
    operator: 'viewer',
    operation: 'subscriptions',
  },
  {
    method: 'POST',
    path: '/v1/inbox/subscriptions',
    scope: 'processor',
    operator: 'admin',
    operation: 'createSubscription',
    audit: 'subscription_create',
  },
  {
    method: 'DELETE',
    path: '/v1/inbox/subscriptions/{name}',
    scope: 'processor',
    operator: 'admin',
    operation: 'deleteSubscription',
    audit: 'subscription_delete',
  },
  { method: 'POST', path: '/v1/console/session', scope: 'public', operator: 'none', operation: 'signIn' },
  {
    method: 'GET',
    path: '/v1/console/session',
    scope: 'operator',
    operator: 'viewer',
    operation: 'showSession',
    tenant: 'none',
  },
  {
    method: 'DELETE',
    path: '/v1/console/session',
    scope: 'operator',
    operator: 'viewer',
    operation: 'signOut',
    tenant: 'none',
  },
  {
    method: 'GET',
    path: '/v1/console/tenants',
    scope: 'operator',
    operator: 'viewer',
    operation: 'listTenants',
    tenant: 'none',
  },
  { method: 'GET', path: '/v1/console/overview', scope: 'operator', operator: 'viewer', operation: 'overview' },
  { method: 'GET', path: '/v1/console/tokens', scope: 'operator', operator: 'viewer', operation: 'listTokens' },
  {
    method: 'POST',
    path: '/v1/console/tokens',
    scope: 'operator',
    operator: 'admin',
    operation: 'createToken',
    audit: 'token_create',
  },
  {
    method: 'POST',
    path: '/v1/console/tokens/{key_id}/rotate',
    scope: 'operator',
    operator: 'admin',
    operation: 'rotateToken',
    audit: 'token_rotate',
  },
  {
    method: 'POST',
    path: '/v1/console/tokens/{key_id}/disable',
    scope: 'operator',
    operator: 'admin',
    operation: 'disableToken',
    audit: 'token_disable',
  },
  {
    method: 'POST',
    path: '/v1/console/tokens/{key_id}/enable',
    scope: 'operator',
    operator: 'admin',
    operation: 'enableToken',
    audit: 'token_enable',
  },
  { method: 'GET', path: '/v1/console/refusals/{id}', scope: 'operator', operator: 'viewer', operation: 'showRefusal' },
  {
    method: 'POST',
    path: '/v1/console/refusals/{id}/accept',
    scope: 'operator',
    operator: 'admin',
    operation: 'acceptRefusal',
    audit: 'refusal_accept',
  },
  {
    method: 'POST',
    path: '/v1/console/test-events',
    scope: 'operator',
    operator: 'admin',
    operation: 'sendTestEvent',
    audit: 'test_event',
  },
  {
    method: 'GET',
    path: '/v1/console/audit',
    scope: 'operator',
    operator: 'admin',
    operation: 'listAudit',
    tenant: 'none',
  },
  { method: 'GET', path: '/console', scope: 'public', operator: 'none', operation: 'consolePage' },
  { method: 'GET', path: '/console/{path}', scope: 'public', operator: 'none', operation: 'consoleFile', isOpen: true },
  { method: 'GET', path: '/livez', scope: 'public', operator: 'none', operation: 'livez' },
  { method: 'GET', path: '/readyz', scope: 'public', operator: 'none', operation: 'readyz' },
  { method: 'GET', path: '/openapi.yaml', scope: 'public', operator: 'none', operation: 'openapiYaml' },
  { method: 'GET', path: '/openapi.json', scope: 'public', operator: 'none', operation: 'openapiJson' },
  { method: 'GET', path: '/docs', scope: 'public', operator: 'none', operation: 'docs' },
]

/** The routes of a path, whatever their method. */
export function routesOf(routes: readonly Route[], path: string): Route[] {
  const parts = path.split('/')
  return routes.filter((route) => {
    const pattern = route.path.split('/')
    const fits = route.isOpen
      ? pattern.length <= parts.length && !parts.includes('', 1)
      : pattern.length === parts.length
    return fits && pattern.every((part, n) => part === parts[n] || isPlace(part, parts[n]))
  })
}

function isPlace(part: string, given: string | undefined): boolean {
  return part.startsWith('{') && given !== undefined && given !== ''
}

/** What there is of the console: addresses that are gone where it is turned off. */
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

/** One trailing slash is the same route. */
export function withoutTrailingSlash(path: string): string {
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path
}

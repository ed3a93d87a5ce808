// THE table: every address of the service, what it asks of a token, and which operation answers. The contract in
// api/openapi.yaml, the documentation and the tests of scopes are all held against it.

import type { ScopeRule } from '../auth/scope.ts'

export interface Route {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** As in the contract: `{id}` stands for one part of the path. */
  readonly path: string
  readonly scope: ScopeRule
  readonly operation: OperationName
}

/** `intake` and `stream` are lanes of their own; `tester` takes its token from elsewhere. */
export type OperationName =
  | 'ping'
  | 'tester'
  | 'intake'
  | InboxOperationName
  | 'stream'
  | ProcessingOperation
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

export const ROUTES: readonly Route[] = [
  { method: 'GET', path: '/api/ping', scope: 'any', operation: 'ping' },
  { method: 'GET', path: '/api/inbox-test', scope: 'any', operation: 'tester' },
  { method: 'POST', path: '/v1/inbox/events', scope: 'intake', operation: 'intake' },
  { method: 'POST', path: '/api/inbox', scope: 'intake', operation: 'intake' },
  { method: 'GET', path: '/v1/inbox/events', scope: 'processor', operation: 'listEvents' },
  { method: 'GET', path: '/v1/inbox/events/{id}', scope: 'processor', operation: 'showEvent' },
  { method: 'GET', path: '/v1/inbox/events/{id}/payload', scope: 'processor', operation: 'eventPayload' },
  { method: 'GET', path: '/v1/inbox/events/{id}/revisions', scope: 'processor', operation: 'listRevisions' },
  { method: 'POST', path: '/v1/inbox/events/{id}/promote', scope: 'processor', operation: 'promoteRevision' },
  { method: 'GET', path: '/v1/inbox/conversations', scope: 'processor', operation: 'listConversations' },
  { method: 'GET', path: '/v1/inbox/conversations/{id}', scope: 'processor', operation: 'showConversation' },
  {
    method: 'GET',
    path: '/v1/inbox/conversations/{id}/events',
    scope: 'processor',
    operation: 'listConversationEvents',
  },
  { method: 'GET', path: '/v1/inbox/refusals', scope: 'processor', operation: 'listRefusals' },
  { method: 'GET', path: '/v1/inbox/stream', scope: 'processor', operation: 'stream' },
  { method: 'POST', path: '/v1/inbox/claims', scope: 'processor', operation: 'claim' },
  { method: 'POST', path: '/v1/inbox/claims/ack', scope: 'processor', operation: 'ack' },
  { method: 'POST', path: '/v1/inbox/claims/extend', scope: 'processor', operation: 'extend' },
  { method: 'POST', path: '/v1/inbox/claims/release', scope: 'processor', operation: 'release' },
  { method: 'POST', path: '/v1/inbox/requeue', scope: 'processor', operation: 'requeue' },
  { method: 'POST', path: '/v1/inbox/events/{id}/requeue', scope: 'processor', operation: 'requeueEvent' },
  { method: 'GET', path: '/v1/inbox/events/{id}/history', scope: 'processor', operation: 'eventHistory' },
  { method: 'GET', path: '/v1/inbox/subscriptions', scope: 'processor', operation: 'subscriptions' },
  { method: 'POST', path: '/v1/inbox/subscriptions', scope: 'processor', operation: 'createSubscription' },
  { method: 'DELETE', path: '/v1/inbox/subscriptions/{name}', scope: 'processor', operation: 'deleteSubscription' },
  { method: 'GET', path: '/livez', scope: 'public', operation: 'livez' },
  { method: 'GET', path: '/readyz', scope: 'public', operation: 'readyz' },
  { method: 'GET', path: '/openapi.yaml', scope: 'public', operation: 'openapiYaml' },
  { method: 'GET', path: '/openapi.json', scope: 'public', operation: 'openapiJson' },
  { method: 'GET', path: '/docs', scope: 'public', operation: 'docs' },
]

/** The routes of a path, whatever their method. */
export function routesOf(routes: readonly Route[], path: string): Route[] {
  const parts = path.split('/')
  return routes.filter((route) => {
    const pattern = route.path.split('/')
    return pattern.length === parts.length && pattern.every((part, n) => part === parts[n] || isPlace(part, parts[n]))
  })
}

function isPlace(part: string, given: string | undefined): boolean {
  return part.startsWith('{') && given !== undefined && given !== ''
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

// For every operation of the table a request that is answered 200. A new operation without one does not compile, so the
// tests that are made from the table cannot forget it.

import assert from 'node:assert/strict'
import { tokenKeyId } from '../../src/auth/token.ts'
import type { OperationName, Route } from '../../src/http/routes.ts'
import type { TestApp } from './app.ts'
import { readerOf } from './inbox.ts'
import { createHook, type TestHook } from './hooks.ts'
import { idOf, jsonHeaders } from './intake.ts'
import { cookieOf, operatorOf, operatorWith, signIn, signInCode, type TestOperator } from './operators.ts'
import { until } from './until.ts'

interface Sample {
  /** What stands in the path's place. */
  readonly id?:
    | 'event'
    | 'spareEvent'
    | 'revision'
    | 'subscription'
    | 'refusal'
    | 'keyId'
    | 'spareKeyId'
    | 'pushed'
    | 'spare'
    | 'hookKeyId'
    | 'spareHookKeyId'
    | 'page'
  readonly body?: string | ((data: SampleData) => object)
  /** Query parameters that it does not know are ignored. */
  readonly ignoresQuery?: true
  /** Its answer goes on: test/api/stream.test.ts looks at it. */
  readonly isEndless?: true
  /** The second of two is answered otherwise. */
  readonly isOnce?: true
  /** With a session of its own: it ends with it. */
  readonly isLast?: true
}

const CHALLENGED = JSON.stringify({
  title: 'Sample',
  bodies: ['json'],
  signature: { kind: 'none' },
  challenge: { kind: 'hub' },
})

const ofLease = ({ event, leaseId }: SampleData) => ({ events: [{ id: event, lease_id: leaseId }] })

const SAMPLES: Record<OperationName, Sample> = {
  ping: { ignoresQuery: true },
  tester: { ignoresQuery: true },
  intake: { body: '{}', ignoresQuery: true },
  hook: { body: '{"id":7}', ignoresQuery: true },
  listEvents: {},
  showEvent: { id: 'event' },
  eventPayload: { id: 'event' },
  listRevisions: { id: 'event' },
  promoteRevision: { id: 'revision' },
  eraseEvent: { id: 'spareEvent', isOnce: true },
  erase: { body: ({ spareEvent }) => ({ event: spareEvent }), isOnce: true },
  listConversations: {},
  showConversation: { id: 'event' },
  listConversationEvents: { id: 'event' },
  listRefusals: {},
  stream: { isEndless: true },
  claim: { body: '{}' },
  ack: { body: ofLease },
  extend: { body: ofLease },
  release: { body: ofLease },
  requeue: { body: '{}' },
  requeueEvent: { id: 'event', body: '{}' },
  eventHistory: { id: 'event' },
  subscriptions: {},
  createSubscription: { body: '{"name":"another"}' },
  deleteSubscription: { id: 'subscription', isOnce: true },
  listEndpoints: {},
  showEndpoint: { id: 'pushed' },
  setEndpoint: { id: 'pushed', body: '{"url":"http://127.0.0.1:9/"}' },
  removeEndpoint: { id: 'spare', isOnce: true },
  endpointAttempts: { id: 'pushed' },
  pauseEndpoint: { id: 'pushed' },
  resumeEndpoint: { id: 'pushed' },
  rotateEndpointSecret: { id: 'pushed', body: '{}' },
  testEndpoint: { id: 'pushed' },
  replayToEndpoint: { id: 'pushed', body: '{"from":1,"to":1}' },
  signIn: { body: ({ link }) => ({ link }), isOnce: true },
  showSession: {},
  signOut: { isOnce: true, isLast: true },
  listTenants: {},
  overview: {},
  listTokens: {},
  createToken: { body: '{}' },
  rotateToken: { id: 'spareKeyId', body: '{}', isOnce: true },
  disableToken: { id: 'keyId' },
  enableToken: { id: 'keyId' },
  showRefusal: { id: 'refusal' },
  acceptRefusal: { id: 'refusal', body: '{}' },
  sendTestEvent: { body: '{}' },
  listAudit: {},
  listHooks: {},
  createHook: { body: '{"recipe":"elementor"}' },
  showHook: { id: 'hookKeyId' },
  rotateHook: { id: 'spareHookKeyId', body: '{"what":"address"}', isOnce: true },
  disableHook: { id: 'spareHookKeyId' },
  enableHook: { id: 'hookKeyId' },
  hookDeliveries: { id: 'hookKeyId' },
  sendHookSample: { id: 'hookKeyId', body: '{"body":"{}"}' },
  listRecipes: {},
  frontDoor: { ignoresQuery: true },
  consolePage: { ignoresQuery: true },
  consoleFile: { id: 'page', ignoresQuery: true },
  livez: { ignoresQuery: true },
  readyz: { ignoresQuery: true },
  openapiYaml: { ignoresQuery: true },
  openapiJson: { ignoresQuery: true },
  docs: { ignoresQuery: true },
}

export interface SampleRequest {
  readonly method: string
  readonly path: string
  readonly headers: Record<string, string>
  readonly body?: string
}

/** What there is to ask for: an event, which is the first of a conversation, a revision of it, a lease and a subscription. */
export interface SampleData {
  readonly processorToken: string
  readonly adminToken: string
  readonly event: number
  /** Nothing else uses it. */
  readonly spareEvent: number
  readonly revision: number
  readonly leaseId: string
  readonly subscription: string
  /** Subscriptions with an endpoint that cannot be reached; nothing else uses the second. */
  readonly pushed: string
  readonly spare: string
  readonly refusal: number
  /** Tokens that nothing else uses. */
  readonly keyId: string
  readonly spareKeyId: string
  /** A hook that answers a challenge, its key id, and a hook that nothing else uses. */
  readonly hook: TestHook
  readonly hookKeyId: string
  readonly spareHookKeyId: string
  /** A page of the console. */
  readonly page: string
  /** An admin of all tenants, signed in twice, and a link for once more. */
  readonly operator: TestOperator
  readonly leaving: TestOperator
  readonly link: string
}

export async function createSampleData(app: TestApp): Promise<SampleData> {
  const reader = await readerOf(app)
  const event = idOf(await app.post({ source_ref: 'sample', channel_ref: 'sample' }))
  await app.post({ source_ref: 'sample', channel_ref: 'sample', revised: true })
  const { revisions } = (await reader.json(`/v1/inbox/events/${event}/revisions`)) as { revisions: { id: number }[] }
  await app.indexed()
  const command = (path: string, body: object) =>
    app.send({ method: 'POST', path, headers: jsonHeaders(reader.token), body: JSON.stringify(body) })
  const claimed = await command('/v1/inbox/claims', { limit: 1, lease_s: 600 })
  const [{ id, lease_id: leaseId }] = claimed.json!.events as [{ id: number; lease_id: string }]
  assert.equal(id, event)
  await command('/v1/inbox/subscriptions', { name: 'sample' })
  for (const name of ['pushed', 'spare']) {
    await command('/v1/inbox/subscriptions', { name })
    await command(`/v1/inbox/subscriptions/${name}/endpoint`, { url: 'http://127.0.0.1:9/' })
  }
  await app.post('not json')
  const tenant = { accountId: 7, companyId: 42 }
  const refused = await until('the refusal is kept', async () => (await app.store.refusals.list(tenant, 1e15, 1))[0])
  const operator = await operatorOf(app)
  const again = await signIn(app, { link: await signInCode(app, operator.name) })
  const hook = await createHook(app, CHALLENGED)
  return {
    processorToken: reader.token,
    adminToken: await app.createToken({ scope: 'admin' }),
    event,
    spareEvent: idOf(await app.post({ source_ref: 'spare' })),
    revision: revisions[0]!.id,
    leaseId,
    subscription: 'sample',
    pushed: 'pushed',
    spare: 'spare',
    refusal: refused.id,
    keyId: tokenKeyId(await app.createToken())!,
    spareKeyId: tokenKeyId(await app.createToken())!,
    hook,
    hookKeyId: hook.keyId,
    spareHookKeyId: (await createHook(app, 'telegram')).keyId,
    page: 'queue',
    operator,
    leaving: operatorWith(app, operator.name, cookieOf(again)),
    link: await signInCode(app, operator.name),
  }
}

export function sampleRequest(app: TestApp, data: SampleData, route: Route): SampleRequest {
  const { id, isLast, ...sample } = SAMPLES[route.operation]
  const body = route.method === 'GET' ? undefined : sample.body
  const tokens = { processor: data.processorToken, admin: data.adminToken } as Partial<Record<string, string>>
  const token = tokens[route.scope] ?? app.token
  return {
    method: route.method,
    path: route.operation === 'hook' ? hookPath(data.hook, route) : pathFor(route, id && String(data[id])),
    headers: {
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...(route.scope === 'operator'
        ? (isLast ? data.leaving : data.operator).headers()
        : { Authorization: `Bearer ${token}` }),
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body(data)) }),
  }
}

function pathFor({ path }: Route, value: string | undefined): string {
  return value === undefined ? path : path.replace(/\{\w+\}/, value)
}

function hookPath({ path, verifyToken }: TestHook, { method }: Route): string {
  return method === 'GET' ? `${path}?hub.mode=subscribe&hub.verify_token=${verifyToken}&hub.challenge=1` : path
}

/** Whether it can be sent again for the same answer. */
export function isRepeatable(route: Route): boolean {
  return hasEnd(route) && SAMPLES[route.operation].isOnce !== true
}

/** Whether its answer can be waited for. */
export function hasEnd(route: Route): boolean {
  return SAMPLES[route.operation].isEndless !== true
}

export function ignoresQuery(route: Route): boolean {
  return SAMPLES[route.operation].ignoresQuery === true
}

// For every operation of the table a request that is answered 200. A new operation without one does not compile, so the
// tests that are made from the table cannot forget it.

import assert from 'node:assert/strict'
import type { OperationName, Route } from '../../src/http/routes.ts'
import type { TestApp } from './app.ts'
import { readerOf } from './inbox.ts'
import { idOf, jsonHeaders } from './intake.ts'

interface Sample {
  /** What stands in the path's place. */
  readonly id?: 'event' | 'revision' | 'subscription'
  readonly body?: string | ((data: SampleData) => object)
  /** Query parameters that it does not know are ignored. */
  readonly ignoresQuery?: true
  /** Its answer goes on: test/api/stream.test.ts looks at it. */
  readonly isEndless?: true
  /** The second of two is answered otherwise. */
  readonly isOnce?: true
}

const ofLease = ({ event, leaseId }: SampleData) => ({ events: [{ id: event, lease_id: leaseId }] })

const SAMPLES: Record<OperationName, Sample> = {
  ping: { ignoresQuery: true },
  tester: { ignoresQuery: true },
  intake: { body: '{}', ignoresQuery: true },
  listEvents: {},
  showEvent: { id: 'event' },
  eventPayload: { id: 'event' },
  listRevisions: { id: 'event' },
  promoteRevision: { id: 'revision' },
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
  readonly event: number
  readonly revision: number
  readonly leaseId: string
  readonly subscription: string
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
  return { processorToken: reader.token, event, revision: revisions[0]!.id, leaseId, subscription: 'sample' }
}

export function sampleRequest(app: TestApp, data: SampleData, route: Route): SampleRequest {
  const { id, body } = SAMPLES[route.operation]
  const token = route.scope === 'processor' ? data.processorToken : app.token
  return {
    method: route.method,
    path: id ? route.path.replace(/\{\w+\}/, String(data[id])) : route.path,
    headers: body === undefined ? { Authorization: `Bearer ${token}` } : jsonHeaders(token),
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body(data)) }),
  }
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

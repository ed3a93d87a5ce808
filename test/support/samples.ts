// For every operation of the table a request that is answered 200. A new operation without one does not compile, so the
// tests that are made from the table cannot forget it.

import type { OperationName, Route } from '../../src/http/routes.ts'
import type { TestApp } from './app.ts'
import { readerOf } from './inbox.ts'
import { idOf, jsonHeaders } from './intake.ts'

interface Sample {
  /** Which id stands in the path's `{id}`. */
  readonly id?: 'event' | 'revision'
  readonly body?: string
  /** Query parameters that it does not know are ignored. */
  readonly ignoresQuery?: true
  /** Its answer goes on: test/api/stream.test.ts looks at it. */
  readonly isEndless?: true
}

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

/** What there is to ask for: an event, which is the first of a conversation, and a revision of it. */
export interface SampleData {
  readonly processorToken: string
  readonly event: number
  readonly revision: number
}

export async function createSampleData(app: TestApp): Promise<SampleData> {
  const reader = await readerOf(app)
  const event = idOf(await app.post({ source_ref: 'sample', channel_ref: 'sample' }))
  await app.post({ source_ref: 'sample', channel_ref: 'sample', revised: true })
  const { revisions } = (await reader.json(`/v1/inbox/events/${event}/revisions`)) as { revisions: { id: number }[] }
  return { processorToken: reader.token, event, revision: revisions[0]!.id }
}

export function sampleRequest(app: TestApp, data: SampleData, route: Route): SampleRequest {
  const { id, body } = SAMPLES[route.operation]
  const token = route.scope === 'processor' ? data.processorToken : app.token
  return {
    method: route.method,
    path: id ? route.path.replace('{id}', String(data[id])) : route.path,
    headers: body === undefined ? { Authorization: `Bearer ${token}` } : jsonHeaders(token),
    ...(body === undefined ? {} : { body }),
  }
}

/** Whether its answer can be waited for. */
export function hasEnd(route: Route): boolean {
  return SAMPLES[route.operation].isEndless !== true
}

export function ignoresQuery(route: Route): boolean {
  return SAMPLES[route.operation].ignoresQuery === true
}

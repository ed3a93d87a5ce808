// Tenants never meet: made from the route table, so that a new route cannot be forgotten. With another tenant's ids every
// route answers as for an id that does not exist, to the letter; a route without an id shows what an empty inbox shows.

import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { type OperationName, ROUTES, type Route } from '../../src/http/routes.ts'
import type { TestApp } from '../support/app.ts'
import type { TestAnswer } from '../support/client.ts'
import { drivers } from '../support/drivers.ts'
import { readerOf } from '../support/inbox.ts'
import { createSampleData, hasEnd, type SampleData, sampleRequest } from '../support/samples.ts'
import { sharedApp } from '../support/shared-app.ts'

/** Each differs from account 7 of company 42 in another way. */
const OTHERS = [
  { accountId: 7, companyId: 43 },
  { accountId: 8, companyId: 42 },
  { accountId: 42, companyId: 7 },
] as const

const UNKNOWN_IDS = [
  '999999999999',
  '999999999999999',
  '9'.repeat(30),
  '0',
  '-1',
  '1.0',
  '1e3',
  '0x1',
  'abc',
  '%20',
  'null',
]

/** Routes that name no id: what each answers another tenant, which has to be what an empty inbox answers. */
const STRANGERS: Partial<Record<OperationName, (data: SampleData) => Record<string, unknown>>> = {
  listEvents: () => ({ ok: true, events: [], next: null }),
  listConversations: () => ({ ok: true, conversations: [], next: null }),
  listRefusals: () => ({ ok: true, refusals: [], next: null }),
  listEndpoints: () => ({ ok: true, endpoints: [] }),
  claim: () => ({ ok: true, events: [] }),
  ack: leaseLost,
  extend: leaseLost,
  release: leaseLost,
  requeue: () => ({ ok: true, dry_run: false, matched: 0, requeued: 0 }),
  subscriptions: () => ({
    ok: true,
    subscriptions: [
      {
        name: 'default',
        created_at: null,
        enqueued_up_to: 0,
        max_attempts: 5,
        first_delay_s: 1,
        max_delay_s: 3600,
      },
    ],
  }),
}
/** It makes what is asked for in the tenant of the token: nothing of another's to be seen. */
const MAKES: readonly OperationName[] = ['createSubscription']

function leaseLost({ event }: SampleData): Record<string, unknown> {
  return { ok: true, events: [{ id: event, ok: false, error: 'lease_lost' }] }
}

const withId = (route: Route) => route.path.includes('{')
/** A stream has no end: that it shows one tenant alone is in test/api/stream.test.ts. */
const routes = ROUTES.filter((route) => route.scope === 'processor' && hasEnd(route))

/** Everything that a client can see of an answer, but what differs between any two. */
function seen({ status, headers, text }: TestAnswer) {
  const { date: _, 'x-request-id': requestId, ...rest } = headers
  return { status, headers: rest, text: text.replaceAll(String(requestId), '<request id>') }
}

for (const driver of drivers) {
  describe(`tenants on ${driver.name}`, () => {
    const shared = sharedApp(driver)
    let data: SampleData
    before(async () => {
      const { app } = shared
      data = await createSampleData(app)
      await app.post('not json')
      await app.indexed()
    })

    const ask = (app: TestApp, route: Route, token: string, id: string | number) => {
      const { method, headers, body } = sampleRequest(app, data, route)
      return app.send({
        method,
        path: route.path.replaceAll(/\{\w+\}/g, String(id)),
        headers: { ...headers, Authorization: `Bearer ${token}` },
        ...(body === undefined ? {} : { body }),
      })
    }

    test('the matrix knows every route that reads or processes', () => {
      assert.ok(routes.length >= 9)
      for (const route of routes) {
        const isKnown = withId(route) || STRANGERS[route.operation] || MAKES.includes(route.operation)
        assert.ok(isKnown, `${route.method} ${route.path} is not in the matrix`)
      }
    })

    for (const route of routes.filter(withId)) {
      test(`404: ${route.method} ${route.path} with another tenant's ids, as with one that does not exist`, async () => {
        const { app } = shared
        const { token } = await readerOf(app)
        const expected = seen(await ask(app, route, token, UNKNOWN_IDS[0]!))
        assert.equal(expected.status, 404)
        for (const id of UNKNOWN_IDS) assert.deepEqual(seen(await ask(app, route, token, id)), expected, id)
        for (const tenant of OTHERS) {
          const other = await readerOf(app, tenant)
          for (const id of [data.event, data.revision, data.subscription, ...UNKNOWN_IDS]) {
            assert.deepEqual(seen(await ask(app, route, other.token, id)), expected, `${id}`)
          }
        }
        // Last, since some change what is there.
        const own = await app.send(sampleRequest(app, data, route))
        assert.equal(own.status, 200, 'its own tenant gets an answer')
      })
    }

    for (const route of routes.filter((one) => STRANGERS[one.operation])) {
      test(`${route.method} ${route.path} shows nothing of another tenant`, async () => {
        const { app } = shared
        const expected = STRANGERS[route.operation]!(data)
        for (const tenant of OTHERS) {
          const other = await readerOf(app, tenant)
          const answer = await ask(app, route, other.token, '')
          assert.equal(answer.status, 200)
          // Its own first claim made its own default subscription.
          const json: unknown = JSON.parse(answer.text, (key, value) => (key === 'created_at' ? null : value))
          assert.deepEqual(json, expected)
        }
        const own = await app.send(sampleRequest(app, data, route))
        assert.equal(own.status, 200)
        if (!['claim', 'extend', 'release', 'requeue'].includes(route.operation))
          assert.notDeepEqual(own.json, expected)
      })
    }

    for (const query of [
      'source_ref=sample',
      'channel_ref=sample',
      'kind=revision',
      'kind=event',
      'scope=cf',
      'received_after=2020-01-01T00:00:00Z',
    ]) {
      test(`a list by ${query} shows nothing of another tenant`, async () => {
        const { app } = shared
        const own = await readerOf(app)
        assert.notDeepEqual((await own.json(`/v1/inbox/events?${query}`)).events, [])
        for (const tenant of OTHERS) {
          const other = await readerOf(app, tenant)
          assert.deepEqual((await other.json(`/v1/inbox/events?${query}`)).events, [])
        }
      })
    }
  })
}

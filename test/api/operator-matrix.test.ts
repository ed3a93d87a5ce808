// What an operator can reach, made from the route table so that no route can be forgotten: one who is limited to a tenant
// gets nothing of another's by any address, with any id; a viewer changes nothing; nobody gets anything without a session.

import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { type OperationName, ROUTES, type Route } from '../../src/http/routes.ts'
import type { TestApp } from '../support/app.ts'
import type { TestAnswer } from '../support/client.ts'
import { drivers } from '../support/drivers.ts'
import { EventStream } from '../support/event-stream.ts'
import { operatorOf, TENANT_HEADER, type TestOperator } from '../support/operators.ts'
import { createSampleData, hasEnd, type SampleData, sampleRequest } from '../support/samples.ts'
import { sharedApp } from '../support/shared-app.ts'
import { until } from '../support/until.ts'

const OWN = { accountId: 8, companyId: 42 }
const UNKNOWN_TENANT = '123456/654321'

/** Those that differ from account 8 of company 42 in one of the two, or only by their order, and the owner of the samples. */
const FOREIGN = ['7/42', '8/43', '42/8']

const forOperators = ROUTES.filter((route) => route.operator !== 'none' && hasEnd(route))
const ofTenants = forOperators.filter((route) => route.tenant !== 'none')
const withId = (route: Route) => route.path.includes('{')

function seen({ status, headers, text }: TestAnswer) {
  const { date: _, 'x-request-id': requestId, ...rest } = headers
  return { status, headers: rest, text: text.replaceAll(String(requestId), '<request id>') }
}

for (const driver of drivers) {
  describe(`what operators reach on ${driver.name}`, () => {
    const shared = sharedApp(driver)
    let data: SampleData
    let limited: TestOperator
    let viewer: TestOperator
    before(async () => {
      const { app } = shared
      data = await createSampleData(app)
      for (const [accountId, companyId] of [
        [8, 42],
        [8, 43],
        [42, 8],
      ] as const) {
        await app.createToken({ accountId, companyId })
      }
      limited = await operatorOf(app, { tenants: [OWN] })
      viewer = await operatorOf(app, { role: 'viewer' })
      await app.indexed()
    })

    /** The sample of a route, which works for the tenant 7/42, with another operator and tenant. */
    const ask = (app: TestApp, route: Route, operator: TestOperator, tenant: string, id?: string | number) => {
      const { Authorization: _, ...sample } = sampleRequest(app, data, route).headers
      const { method, path, body } = sampleRequest(app, data, route)
      return app.send({
        method,
        path: id === undefined ? path : route.path.replace(/\{\w+\}/, String(id)),
        headers: { ...sample, ...operator.headers(tenant) },
        ...(body === undefined ? {} : { body }),
      })
    }

    test('the matrix has every route that takes a session', () => {
      assert.ok(ofTenants.length >= 20)
      const without = forOperators.filter((route) => route.tenant === 'none').map(({ operation }) => operation)
      const known: OperationName[] = ['showSession', 'signOut', 'listTenants', 'listRecipes', 'listAudit']
      assert.deepEqual(without.toSorted(), known.toSorted(), 'what names no tenant is looked at below, one by one')
    })

    for (const route of ofTenants) {
      test(`404: ${route.method} ${route.path} for another tenant, as for one that does not exist`, async () => {
        const { app } = shared
        const expected = seen(await ask(app, route, limited, UNKNOWN_TENANT))
        assert.equal(expected.status, 404)
        for (const tenant of FOREIGN) {
          assert.deepEqual(seen(await ask(app, route, limited, tenant)), expected, tenant)
        }
      })
    }

    for (const route of ofTenants.filter(withId)) {
      test(`404: ${route.method} ${route.path} for one's own tenant with another's ids, as with unknown ones`, async () => {
        const { app } = shared
        const expected = seen(await ask(app, route, limited, '8/42', '999999999999'))
        assert.equal(expected.status, 404)
        const ids = [data.event, data.revision, data.subscription, data.refusal, data.keyId, data.spareKeyId]
        for (const id of [...ids, '0', '-1', 'abc', '9'.repeat(30)]) {
          assert.deepEqual(seen(await ask(app, route, limited, '8/42', id)), expected, String(id))
        }
      })
    }

    for (const route of ofTenants.filter((one) => !withId(one) && one.method === 'GET')) {
      test(`${route.method} ${route.path} shows one's own tenant without anything of another's`, async () => {
        const { app } = shared
        const own = await ask(app, route, limited, '8/42')
        assert.equal(own.status, 200)
        for (const secret of ['sample', data.keyId, data.leaseId]) assert.ok(!own.text.includes(secret), own.text)
        const admin = await ask(app, route, data.operator, '7/42')
        assert.equal(admin.status, 200, 'who may see all gets an answer')
        assert.notEqual(admin.text, own.text, 'and another one')
      })
    }

    test('GET /v1/inbox/stream is 404 for another tenant, and shows of one’s own tenant nothing of another’s', async () => {
      const { app } = shared
      const follow = (tenant: string) =>
        EventStream.open(app.port, '', { after: 0, credentials: limited.headers(tenant) })
      for (const tenant of [...FOREIGN, UNKNOWN_TENANT]) {
        const refused = await follow(tenant)
        assert.equal(refused.status, 404, tenant)
        await refused.closed
        assert.deepEqual(refused.events, [])
      }
      const stream = await follow('8/42')
      assert.equal(stream.status, 200)
      const token = await app.createToken(OWN)
      await app.post({ source_ref: 'own' }, { Authorization: `Bearer ${token}` })
      await until('the event is on the stream', () => stream.events.length > 0)
      assert.deepEqual(
        stream.events.map((one) => one.source_ref),
        ['own'],
      )
      stream.close()
    })

    test('a list of tenants, a session and the audit log show no tenant that one may not see', async () => {
      const { app } = shared
      await data.operator.post('/v1/console/test-events', '{}')
      const tenants = await limited.get('/v1/console/tenants')
      assert.deepEqual(tenants.json?.tenants, [{ account_id: 8, company_id: 42 }])
      const session = await limited.get('/v1/console/session')
      assert.deepEqual((session.json!.operator as { tenants: unknown }).tenants, [{ account_id: 8, company_id: 42 }])
      const seenAll = (await data.operator.get('/v1/console/audit?limit=200')).json?.entries as { operator: string }[]
      const seenSome = (await limited.get('/v1/console/audit?limit=200')).json?.entries as { operator: string }[]
      assert.ok(seenAll.some(({ operator }) => operator === data.operator.name))
      assert.ok(seenSome.length > 0 && seenSome.every(({ operator }) => operator === limited.name))
      assert.equal((await app.send({ path: '/v1/console/audit', headers: viewer.headers() })).status, 403)
    })

    for (const route of forOperators) {
      test(`${route.operator === 'admin' ? '403' : '200'}: a viewer and ${route.method} ${route.path}`, async () => {
        const { app } = shared
        const before = await app.store.events.watermark()
        // Signing out would end the session that the other cases need.
        const operator = route.operation === 'signOut' ? await operatorOf(app, { role: 'viewer' }) : viewer
        const answer = await ask(app, route, operator, '7/42')
        if (route.operator === 'admin') {
          assert.equal(answer.status, 403)
          assert.equal(answer.json?.error, 'forbidden_role')
          assert.equal(await app.store.events.watermark(), before)
        } else {
          assert.equal(answer.status, 200, answer.text)
        }
      })
    }

    for (const route of forOperators) {
      test(`${route.method} ${route.path} without Origin ${route.method === 'GET' ? 'is answered' : 'is refused'}`, async () => {
        const { app } = shared
        const { method, path, headers, body } = sampleRequest(app, data, route)
        const { Authorization: _, ...rest } = headers
        const operator = route.operation === 'signOut' ? await operatorOf(app) : data.operator
        const { Origin: _origin, ...own } = { ...rest, ...operator.headers() }
        const answer = await app.send({ method, path, headers: own, ...(body === undefined ? {} : { body }) })
        if (method === 'GET') assert.equal(answer.status, 200)
        else assert.equal(answer.json?.error, 'forbidden_origin')
      })
    }

    for (const route of ROUTES.filter((one) => one.operator === 'none' && one.scope !== 'public')) {
      test(`401: ${route.method} ${route.path} takes no session`, async () => {
        const { app } = shared
        const { method, path, headers, body } = sampleRequest(app, data, route)
        const { Authorization: _, ...rest } = headers
        const own = { ...rest, ...data.operator.headers() }
        const answer = await app.send({ method, path, headers: own, ...(body === undefined ? {} : { body }) })
        assert.equal(answer.json?.error, 'missing_token')
      })
    }

    for (const route of ROUTES.filter((one) => one.scope === 'operator')) {
      test(`401: ${route.method} ${route.path} asks for a session, and no token stands in for it`, async () => {
        const { app } = shared
        const { method, path, body } = sampleRequest(app, data, route)
        for (const token of [app.token, data.processorToken, null]) {
          const answer = await app.send({
            method,
            path,
            headers: {
              [TENANT_HEADER]: '7/42',
              'Content-Type': 'application/json',
              ...(token ? { Authorization: `Bearer ${token}` } : {}),
            },
            ...(body === undefined ? {} : { body }),
          })
          assert.equal(answer.json?.error, 'not_signed_in')
        }
      })
    }

    // Last, since some change what is there.
    for (const route of forOperators) {
      test(`200: ${route.method} ${route.path} for an admin, and the audit log has what was changed`, async () => {
        const { app } = shared
        const admin = route.operation === 'signOut' ? data.leaving : data.operator
        const answer = await ask(app, route, admin, '7/42')
        assert.equal(answer.status, 200, answer.text)
        const entries = await app.store.operators.listAudit(null, 10)
        const noted = entries.find(({ requestId }) => requestId === answer.headers['x-request-id'])
        const changes = route.audit !== undefined || route.operation === 'signOut'
        assert.equal(changes, route.method !== 'GET', 'what is no GET changes something')
        assert.equal(noted !== undefined, changes)
        if (!noted) return
        assert.equal(noted.operator, admin.name)
        assert.equal(noted.action, route.audit ?? 'sign_out')
        assert.deepEqual(noted.tenant, route.tenant === 'none' ? null : { accountId: 7, companyId: 42 })
        assert.equal(noted.address, '127.0.0.1')
        if (withId(route)) assert.ok(noted.target !== null && answer.text.includes(noted.target))
      })
    }
  })
}

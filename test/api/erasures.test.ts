// DELETE /v1/inbox/events/{id} and POST /v1/inbox/erasures: who may erase, what goes, and what the other addresses say afterwards.

import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { drivers } from '../support/drivers.ts'
import { idsOf, type Json, type Reader, readerOf } from '../support/inbox.ts'
import { idOf, jsonHeaders } from '../support/intake.ts'
import { operatorOf } from '../support/operators.ts'
import { sharedApp } from '../support/shared-app.ts'
import { until } from '../support/until.ts'

const message = (ref: string, email: string, text = 'hello') => ({
  ...{ source_ref: ref, channel_ref: `chat/${email}`, contact: { name: 'Ada', email } },
  message: { type: 'text', text },
})

for (const driver of drivers) {
  describe(`erasing on ${driver.name}`, () => {
    const shared = sharedApp(driver)
    let reader: Reader
    let admin: string
    before(async () => {
      reader = await readerOf(shared.app)
      admin = await shared.app.createToken({ scope: 'admin' })
    })

    const erase = (body: object, headers: Record<string, string> = jsonHeaders(admin)) =>
      shared.app.send({ method: 'POST', path: '/v1/inbox/erasures', headers, body: JSON.stringify(body) })
    const remove = (id: number, token = admin) =>
      shared.app.send({
        method: 'DELETE',
        path: `/v1/inbox/events/${id}`,
        headers: { Authorization: `Bearer ${token}` },
      })
    const isGone = (body: object) =>
      until('nothing is pending', async () => (await erase({ ...body, dry_run: true })).json?.pending === false)

    test('200: a message goes with its revisions and what was promoted from them', async () => {
      const { app } = shared
      const id = idOf(await app.post(message('family', 'f@example.org')))
      await app.post(message('family', 'f@example.org', 'changed'))
      const { revisions } = (await reader.json(`/v1/inbox/events/${id}/revisions`)) as { revisions: Json[] }
      const revision = revisions[0]!.id as number
      const path = `/v1/inbox/events/${revision}/promote`
      const promoted = (await app.send({ method: 'POST', path, headers: { Authorization: `Bearer ${reader.token}` } }))
        .json!.id as number
      await app.indexed()
      const answer = await remove(promoted)
      assert.deepEqual([answer.status, answer.json?.messages, answer.json?.events], [200, 1, 3], answer.text)
      for (const one of [id, revision, promoted]) {
        assert.equal((await reader.get(`/v1/inbox/events/${one}`)).json?.error, 'erased')
        assert.equal((await reader.get(`/v1/inbox/events/${one}/payload`)).status, 410)
      }
      await isGone({ event: id })
      const [listed] = (await reader.json('/v1/inbox/events?source_ref=family')).events as [Json]
      assert.deepEqual(
        {
          ...(listed.contact as object),
          sha256: listed.sha256,
          source_ref: listed.source_ref,
          snippet: listed.snippet,
        },
        { name: null, email: null, sha256: null, source_ref: null, snippet: null },
      )
      assert.equal(typeof listed.erased_at, 'string')
      const again = await remove(id)
      assert.deepEqual([again.status, again.json?.messages, again.json?.pending], [200, 0, false])
      const resent = await app.post(message('family', 'f@example.org'))
      assert.deepEqual([resent.json?.duplicate, resent.json?.conflict ?? false, idOf(resent)], [true, false, id])
    })

    test('200: by e-mail address, after a dry run; others stay', async () => {
      const { app } = shared
      const ids = []
      for (let n = 0; n < 3; n++) ids.push(idOf(await app.post(message(`mail:${n}`, 'Gone@Example.org'))))
      const kept = idOf(await app.post(message('mail:kept', 'kept@example.org')))
      await app.post('{"source_ref":"mail:x","contact":{"email":"gone@example.org"} broken')
      await until('the refusal is kept', async () => {
        const { refusals } = (await reader.json('/v1/inbox/refusals')) as { refusals: unknown[] }
        return refusals.length > 0
      })
      await app.indexed()
      const counted = await erase({ email: 'gone@example.org', dry_run: true })
      const found = { messages: 3, events: 3, refusals: 1, next: null }
      assert.deepEqual({ ...found, ...pick(counted.json!, Object.keys(found)) }, found)
      assert.equal((await reader.get(`/v1/inbox/events/${ids[0]}`)).status, 200)
      const erased = await erase({ email: 'GONE@example.org' })
      assert.deepEqual(pick(erased.json!, Object.keys(found)), found)
      await isGone({ event: ids[0] })
      assert.deepEqual((await reader.json('/v1/inbox/events?contact_email=gone@example.org')).events, [])
      assert.equal((await reader.get(`/v1/inbox/events/${kept}`)).status, 200)
      assert.deepEqual((await reader.json('/v1/inbox/refusals')).refusals, [])
    })

    test('200: a conversation, page by page', async () => {
      const { app } = shared
      const ids: number[] = []
      for (let n = 0; n < 103; n++) ids.push(idOf(await app.post(message(`long:${n}`, 'long@example.org'))))
      await app.indexed()
      const first = await erase({ conversation: ids[0] })
      assert.deepEqual([first.json?.messages, first.json?.next], [100, ids[99]])
      const second = await erase({ conversation: ids[0], cursor: first.json?.next })
      assert.deepEqual([second.json?.messages, second.json?.next], [3, null])
      await isGone({ event: ids[0] })
      const { conversation } = (await reader.json(`/v1/inbox/conversations/${ids[0]}`)) as { conversation: Json }
      assert.deepEqual([conversation.event_count, conversation.last_event_id ?? ids[102]], [103, ids[102]])
      assert.match(conversation.channel_ref as string, /^erased:/)
      assert.equal(idsOf((await reader.json('/v1/inbox/events?limit=1')).events as Json[])[0], ids[102])
    })

    test('200: a refusal of the same reference goes too, even if it still waits in memory to be written', async () => {
      const { app } = shared
      const refusals = async (): Promise<string[]> => {
        const page = await app.store.refusals.list({ accountId: 7, companyId: 42 }, Number.MAX_SAFE_INTEGER, 50)
        return page.map(({ body }) => Buffer.from(body).toString()).filter((body) => body.includes('waits:'))
      }
      for (let n = 0; n < 12; n++) {
        const id = idOf(await app.post(message(`waits:${n}`, 'waits@example.org')))
        await app.post(`{"source_ref":"waits:${n}" broken`)
        assert.equal((await remove(id)).json?.refusals, 1)
      }
      await app.post('{"source_ref":"waits:other" broken')
      await until('a later refusal is written', async () => (await refusals()).join().includes('waits:other'))
      assert.equal((await refusals()).length, 1)
    })

    test('404: what the tenant does not have', async () => {
      const { app } = shared
      const theirs = await app.createToken({ accountId: 8, companyId: 42, scope: 'admin' })
      const id = idOf(await app.post(message('ours', 'ours@example.org')))
      await app.indexed()
      assert.equal((await remove(id, theirs)).status, 404)
      assert.equal((await remove(999_999)).status, 404)
      for (const body of [{ event: id }, { conversation: id }, { email: 'ours@example.org' }, { source_ref: 'ours' }]) {
        const answer = await erase(body, jsonHeaders(theirs))
        assert.deepEqual([answer.status, answer.json?.messages, answer.json?.pending], [200, 0, false], answer.text)
      }
      assert.equal((await reader.get(`/v1/inbox/events/${id}`)).status, 200)
    })

    test('403: every scope but admin, which reads and cannot send', async () => {
      const { app } = shared
      const id = idOf(await app.post(message('safe', 'safe@example.org')))
      for (const token of [app.token, reader.token]) {
        assert.deepEqual(
          [(await remove(id, token)).status, (await erase({ event: id }, jsonHeaders(token))).status],
          [403, 403],
        )
      }
      const headers = jsonHeaders(admin)
      const sent = await app.send({ method: 'POST', path: '/v1/inbox/events', headers, body: '{}' })
      assert.equal(sent.status, 403)
      assert.equal((await app.send({ path: `/v1/inbox/events/${id}`, headers })).status, 200)
    })

    test('422: no selector, two of them, or an unknown field', async () => {
      for (const body of [{}, { event: 1, email: 'a@b' }, { event: 0 }, { mail: 'a@b' }, { email: '' }]) {
        assert.equal((await erase(body)).status, 422, JSON.stringify(body))
      }
    })

    test('an operator erases as an admin; the audit log and the log keep no address', async () => {
      const { app } = shared
      const id = idOf(await app.post(message('audited', 'audited@example.org')))
      await app.indexed()
      const operator = await operatorOf(app)
      const viewer = await operatorOf(app, { role: 'viewer' })
      const headers = { 'Content-Type': 'application/json' }
      assert.equal((await erase({ event: id }, { ...headers, ...viewer.headers() })).status, 403)
      const erased = await erase({ email: 'audited@example.org' }, { ...headers, ...operator.headers() })
      assert.deepEqual([erased.status, erased.json?.messages], [200, 1], erased.text)
      await remove(id)
      const entries = (await app.store.operators.listAudit(null, 50)).filter(({ action }) => action === 'erase')
      assert.deepEqual(
        entries.slice(0, 2).map(({ operator: by, target }) => [by.replace(/ .*/, ''), target]),
        [
          ['token', String(id)],
          [operator.name, 'email'],
        ],
      )
      const log = JSON.stringify(app.log)
      assert.ok(log.includes('/v1/inbox/erasures'), 'control: the log has these requests')
      assert.ok(!log.includes('example.org'))
    })
  })
}

function pick(from: Json, names: readonly string[]): Json {
  return Object.fromEntries(names.map((name) => [name, from[name]]))
}

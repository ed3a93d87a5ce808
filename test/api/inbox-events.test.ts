import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { before, describe, test } from 'node:test'
import { backDoorOf } from '../store/back-door.ts'
import { eraseEvent } from '../store/erase-event.ts'
import { drivers } from '../support/drivers.ts'
import { idsOf, type Json, type Reader, readerOf } from '../support/inbox.ts'
import { idOf } from '../support/intake.ts'
import { sharedApp } from '../support/shared-app.ts'

const sha256 = (text: string | Uint8Array) => createHash('sha256').update(text).digest('hex')

for (const driver of drivers) {
  describe(`reading events on ${driver.name}`, () => {
    const shared = sharedApp(driver)
    let reader: Reader
    before(async () => {
      reader = await readerOf(shared.app)
    })

    test('what was stored a moment ago is in the list, newest first, with what the index knows', async () => {
      const { app } = shared
      const body = {
        source_ref: 'list:1',
        channel_ref: 'list/page',
        contact: { name: 'Ada', email: 'ada@example.org' },
        message: { type: 'text', text: 'Hello there' },
        meta: { form_id: 'x' },
      }
      const id = idOf(await app.post(body))
      const { events } = (await reader.json('/v1/inbox/events?limit=1')) as { events: Json[] }
      const { received_at: receivedAt, key_id: keyId, ...event } = events[0]!
      assert.ok(Math.abs(Date.parse(receivedAt as string) - Date.now()) < 60_000)
      assert.equal(typeof keyId, 'string')
      assert.deepEqual(event, {
        id,
        kind: 'event',
        state: 'pending',
        revises: null,
        promoted_from: null,
        source_ref: 'list:1',
        channel_ref: 'list/page',
        conversation_id: id,
        contact: { name: 'Ada', email: 'ada@example.org' },
        message_type: 'text',
        snippet: 'Hello there',
        warnings: [{ path: '/meta/form_id', expected: 'integer', got: 'string' }],
        unindexed: null,
        scope: 'cf',
        origin: 'intake',
        size: JSON.stringify(body).length,
        sha256: sha256(JSON.stringify(body)),
        erased_at: null,
      })
    })

    test('paging shows every event once, while others arrive', async () => {
      const { app } = shared
      const posted: number[] = []
      for (let n = 0; n < 12; n++) posted.push(idOf(await app.post({ channel_ref: 'paging' })))
      const seen: number[] = []
      let next: string | null = null
      do {
        const cursor: string = next === null ? '' : `&cursor=${next}`
        const page = await reader.json(`/v1/inbox/events?channel_ref=paging&limit=5${cursor}`)
        seen.push(...idsOf(page.events as Json[]))
        next = page.next as string | null
        await app.post({ channel_ref: 'paging' })
      } while (next)
      assert.deepEqual(seen, posted.toReversed())
    })

    test('filters and search lead to their events', async () => {
      const { app } = shared
      const email = 'Zoë.Filter+1@Example.org'
      const id = idOf(
        await app.post({
          source_ref: 'filter:1',
          channel_ref: 'filter/ä&b',
          contact: { name: 'Zoë', email },
          message: { type: 'odd', text: 'Wärme in der Straße' },
        }),
      )
      const { event } = (await reader.json(`/v1/inbox/events/${id}`)) as { event: Json }
      const at = event.received_at as string
      const after = new Date(Date.parse(at) + 1).toISOString()
      for (const [query, found] of [
        [{ source_ref: 'filter:1' }, true],
        [{ source_ref: 'filter:2' }, false],
        [{ channel_ref: 'filter/ä&b' }, true],
        [{ contact_email: 'ZOË.FILTER+1@EXAMPLE.ORG' }, true],
        [{ message_type: 'odd' }, true],
        [{ key_id: event.key_id as string, message_type: 'odd' }, true],
        [{ scope: 'cf', message_type: 'odd' }, true],
        [{ scope: '', message_type: 'odd' }, false],
        [{ kind: 'event', source_ref: 'filter:1' }, true],
        [{ kind: 'revision', source_ref: 'filter:1' }, false],
        [{ received_after: at, source_ref: 'filter:1' }, true],
        [{ received_after: after, source_ref: 'filter:1' }, false],
        [{ received_before: after, source_ref: 'filter:1' }, true],
        [{ received_before: at, source_ref: 'filter:1' }, false],
        [{ q: 'strasse WARME zoe' }, true],
        [{ q: 'filter+1@example' }, true],
        [{ q: 'strasse kalte' }, false],
      ] as [Record<string, string>, boolean][]) {
        const path = `/v1/inbox/events?${new URLSearchParams(query)}`
        assert.deepEqual(idsOf(await reader.all(path, 'events')), found ? [id] : [], path)
      }
      const byTime = await reader.all(`/v1/inbox/events?received_after=${at}&limit=2`, 'events')
      assert.ok(idsOf(byTime).includes(id))
    })

    test('400: what the query cannot mean', async () => {
      const byId = (await reader.json('/v1/inbox/events?limit=1')).next as string
      const byTime = (await reader.json('/v1/inbox/events?limit=1&received_after=2020-01-01T00:00:00Z')).next as string
      assert.equal((await reader.get(`/v1/inbox/refusals?cursor=${byTime}`)).status, 400)
      for (const query of [
        'limit=0',
        'limit=201',
        'limit=ten',
        'limit=',
        'limit=5&limit=6',
        'cursor=',
        'cursor=nonsense',
        `cursor=${byId}A`,
        `cursor=${Buffer.from('{"id":"1"}').toString('base64url')}`,
        `cursor=${Buffer.from('{"id":-1}').toString('base64url')}`,
        `cursor=${Buffer.from('{"id":1,"more":2}').toString('base64url')}`,
        `cursor=${byId}&received_after=2026-01-01T00:00:00Z`,
        `cursor=${byTime}`,
        'kind=resend',
        'state=open',
        'state=',
        'subscription=default',
        'state=done&subscription=No!',
        'received_after=yesterday',
        'received_after=2026-01-01',
        'received_before=2026-13-01T00:00:00Z',
        'channel_ref=',
        'channel_ref=%00',
        `channel_ref=${'x'.repeat(513)}`,
        'scope=Not%20a%20scope',
        'q=',
        'q=%21%21',
        `q=${Array.from({ length: 17 }, (_, n) => `w${n}`).join('+')}`,
        `q=${'x'.repeat(201)}`,
        'chanel_ref=x',
        'token=itr_secret',
      ]) {
        const answer = await reader.get(`/v1/inbox/events?${query}`)
        assert.equal(answer.status, 400, query)
        assert.equal(answer.json?.error, 'invalid_request', query)
        assert.ok(!answer.text.includes('itr_secret'))
      }
      for (const path of ['/v1/inbox/events/1?a=b', '/v1/inbox/events/1/payload?limit=5', '/v1/inbox/refusals?q=x']) {
        assert.equal((await reader.get(path)).status, 400, path)
      }
    })

    test('an event by its id tells everything, and its payload keeps every digit', async () => {
      const { app } = shared
      const body = '{"n":12345678901234567890,"f":1.10,"e":1e400,"d":1,"d":2,"message":{"text":"x"} }'
      const trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
      const id = idOf(await app.post(`\uFEFF${body}`, { traceparent: trace, 'Idempotency-Key': 'digits' }))
      await app.post(`\uFEFF${body}`, { 'Idempotency-Key': 'digits' })
      await app.post('{"other":1}', { 'Idempotency-Key': 'digits' })
      const answer = await reader.get(`/v1/inbox/events/${id}`)
      assert.equal(answer.status, 200)
      assert.ok(answer.text.endsWith(`,"payload":${body}}`), answer.text)
      const { event } = answer.json as { event: Json }
      assert.equal(event.traceparent, trace)
      assert.equal(event.idempotency_key, 'digits')
      assert.equal(event.sha256, sha256(`\uFEFF${body}`))
      assert.deepEqual([event.resends, event.revisions], [1, 1])
      assert.ok((event.last_seen_at as string) >= (event.received_at as string))
    })

    test('a payload of a hundred thousand levels is shown and served', async () => {
      const { app } = shared
      const body = `{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`
      const id = idOf(await app.post(body))
      assert.ok((await reader.get(`/v1/inbox/events/${id}`)).text.endsWith(`,"payload":${body}}`))
      assert.equal((await reader.get(`/v1/inbox/events/${id}/payload`)).text, body)
    })

    test('the payload is the bytes as sent, under headers that let nobody run them', async () => {
      const { app } = shared
      const body = '\uFEFF{ "a" : "<script>alert(1)</script>\\u0000é" }\n'
      const id = idOf(await app.post(body))
      const path = `/v1/inbox/events/${id}/payload`
      const answer = await reader.get(path)
      assert.equal(answer.status, 200)
      assert.equal(answer.text, body)
      assert.equal(answer.headers['content-length'], String(Buffer.byteLength(body)))
      assert.equal(answer.headers.etag, `"${sha256(body)}"`)
      assert.equal(answer.headers['content-type'], 'application/json; charset=utf-8')
      assert.equal(answer.headers['x-content-type-options'], 'nosniff')
      assert.equal(answer.headers['content-disposition'], `attachment; filename="event-${id}.json"`)
      assert.match(answer.headers['content-security-policy'] as string, /^sandbox; default-src 'none'/)
      for (const known of [answer.headers.etag, `"x", W/${answer.headers.etag}`, '*']) {
        const again = await reader.get(path, { 'If-None-Match': known })
        assert.equal(again.status, 304, known)
        assert.equal(again.text, '')
        assert.equal(again.headers.etag, answer.headers.etag)
        assert.equal(again.headers['content-length'], undefined)
      }
      assert.equal((await reader.get(path, { 'If-None-Match': '"other"' })).status, 200)
    })

    test('500: bytes that no longer match their digest are never served, and the log says so', async () => {
      const { app } = shared
      const id = idOf(await app.post('{"a":"true"}'))
      await backDoorOf(driver).replacePayload(app.databaseUrl, id, Buffer.from('{"a":"fake"}'))
      for (const path of [`/v1/inbox/events/${id}`, `/v1/inbox/events/${id}/payload`]) {
        const answer = await reader.get(path, { 'If-None-Match': '*' })
        assert.equal(answer.status, 500)
        assert.equal(answer.json?.error, 'internal_error')
        assert.ok(!answer.text.includes('fake'))
      }
      assert.ok(app.log.some((line) => String(line.error).includes(`event ${id} no longer match`)))
    })

    test('410: an erased event says that it was here; lists still show its place', async () => {
      const { app } = shared
      const id = idOf(await app.post({ source_ref: 'erased:1', message: { text: 'forget me' } }))
      await app.indexed()
      await eraseEvent(app.databaseUrl, id, Date.now())
      for (const path of [`/v1/inbox/events/${id}`, `/v1/inbox/events/${id}/payload`]) {
        const answer = await reader.get(path)
        assert.equal(answer.status, 410)
        assert.equal(answer.json?.error, 'erased')
      }
      const [listed] = await reader.all('/v1/inbox/events?source_ref=erased:1', 'events')
      assert.notEqual(listed?.erased_at, null)
    })

    test('revisions of an event come oldest first, by pages', async () => {
      const { app } = shared
      const first = idOf(await app.post({ source_ref: 'rev:1', n: 0 }))
      for (let n = 1; n <= 5; n++) await app.post({ source_ref: 'rev:1', n })
      const rows = await reader.all(`/v1/inbox/events/${first}/revisions?limit=2`, 'revisions')
      assert.deepEqual(
        rows.map(({ kind, revises }) => [kind, revises]),
        Array.from({ length: 5 }, () => ['revision', first]),
      )
      const texts = await Promise.all(
        idsOf(rows).map(async (id) => (await reader.get(`/v1/inbox/events/${id}/payload`)).text),
      )
      assert.deepEqual(
        texts.map((text) => (JSON.parse(text) as Json).n),
        [1, 2, 3, 4, 5],
      )
      assert.deepEqual(idsOf(await reader.all('/v1/inbox/events?source_ref=rev:1', 'events')), [
        ...idsOf(rows).toReversed(),
        first,
      ])
      const lonely = idOf(await app.post('{}'))
      assert.deepEqual(await reader.json(`/v1/inbox/events/${lonely}/revisions`), {
        ok: true,
        revisions: [],
        next: null,
      })
    })

    test('403: a token that may send may not read, in exactly the words of the interface', async () => {
      const { app } = shared
      for (const path of ['/v1/inbox/events', '/v1/inbox/events/1', '/v1/inbox/events/x?a=b', '/v1/inbox/refusals']) {
        const answer = await app.send({ path, headers: { Authorization: `Bearer ${app.token}` } })
        assert.equal(answer.status, 403)
        assert.equal(answer.text, '{"ok":false,"error":"forbidden_scope"}')
      }
    })
  })
}

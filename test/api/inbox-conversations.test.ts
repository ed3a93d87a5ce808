import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { eraseEvent } from '../store/erase-event.ts'
import { drivers } from '../support/drivers.ts'
import { idsOf, type Json, type Reader, readerOf } from '../support/inbox.ts'
import { idOf } from '../support/intake.ts'
import { sharedApp } from '../support/shared-app.ts'

const message = (channel: string, text: string, name: string) => ({
  channel_ref: channel,
  contact: { name, email: `${name}@example.org` },
  message: { type: 'text', text },
})

for (const driver of drivers) {
  describe(`conversations on ${driver.name}`, () => {
    const shared = sharedApp(driver)
    let reader: Reader
    before(async () => {
      reader = await readerOf(shared.app)
    })

    test('come by latest activity, with counts, contacts and the last text', async () => {
      const { app } = shared
      const a = idOf(await app.post(message('chat/a', 'first', 'ada')))
      const b = idOf(await app.post(message('chat/b', 'other', 'bob')))
      const last = idOf(await app.post(message('chat/a', 'last  words', 'eve')))
      const list = (await reader.json('/v1/inbox/conversations?limit=2')) as { conversations: Json[]; next: unknown }
      assert.deepEqual(idsOf(list.conversations), [a, b])
      const { first_received_at: first, last_received_at: latest, ...conversation } = list.conversations[0]!
      assert.ok(Date.parse(first as string) <= Date.parse(latest as string))
      assert.deepEqual(conversation, {
        id: a,
        channel_ref: 'chat/a',
        event_count: 2,
        unprocessed: 2,
        last_event_id: last,
        first_contact: { name: 'ada', email: 'ada@example.org' },
        last_contact: { name: 'eve', email: 'eve@example.org' },
        last_snippet: 'last words',
      })
    })

    test('one by its id or by its channel_ref; its events oldest first, by pages', async () => {
      const { app } = shared
      const ids: number[] = []
      for (let n = 0; n < 7; n++) ids.push(idOf(await app.post(message('chat/ä b', `${n}`, 'ada'))))
      const { conversation } = (await reader.json(`/v1/inbox/conversations/${ids[0]}`)) as { conversation: Json }
      assert.equal(conversation.event_count, 7)
      assert.deepEqual(await reader.json(`/v1/inbox/conversations?channel_ref=${encodeURIComponent('chat/ä b')}`), {
        ok: true,
        conversations: [conversation],
        next: null,
      })
      assert.deepEqual((await reader.json('/v1/inbox/conversations?channel_ref=nowhere')).conversations, [])
      const events = await reader.all(`/v1/inbox/conversations/${ids[0]}/events?limit=3`, 'events')
      assert.deepEqual(idsOf(events), ids)
      // Only its first event gives a conversation its id.
      assert.equal((await reader.get(`/v1/inbox/conversations/${ids[1]}`)).status, 404)
      assert.equal((await reader.get(`/v1/inbox/conversations/${ids[1]}/events`)).status, 404)
    })

    test('paging shows each once', async () => {
      const { app } = shared
      const ids: number[] = []
      for (let n = 0; n < 9; n++) ids.push(idOf(await app.post({ channel_ref: `paged/${n}` })))
      const seen = idsOf(await reader.all('/v1/inbox/conversations?limit=2', 'conversations'))
      assert.equal(new Set(seen).size, seen.length)
      assert.deepEqual(seen.slice(0, 9), ids.toReversed())
    })

    test('410: a revision whose content was erased cannot be promoted', async () => {
      const { app } = shared
      const first = idOf(await app.post({ source_ref: 'gone:1', n: 1 }))
      await app.post({ source_ref: 'gone:1', n: 2 })
      const { revisions } = (await reader.json(`/v1/inbox/events/${first}/revisions`)) as { revisions: Json[] }
      await eraseEvent(app.databaseUrl, revisions[0]!.id as number, Date.now())
      const answer = await app.send({
        method: 'POST',
        path: `/v1/inbox/events/${revisions[0]!.id as number}/promote`,
        headers: { Authorization: `Bearer ${reader.token}` },
      })
      assert.deepEqual([answer.status, answer.json?.error], [410, 'erased'])
    })

    test('a promoted revision is an event of its conversation, once however often it is asked for', async () => {
      const { app } = shared
      const first = idOf(await app.post({ source_ref: 'p:1', ...message('promote/a', 'first', 'ada') }))
      const body = JSON.stringify({ source_ref: 'p:1', ...message('promote/b', 'really another', 'bob'), n: 1e21 })
      await app.post(body)
      const { revisions } = (await reader.json(`/v1/inbox/events/${first}/revisions`)) as { revisions: Json[] }
      const revision = revisions[0]!.id as number
      const promote = (id: number) =>
        app.send({
          method: 'POST',
          path: `/v1/inbox/events/${id}/promote`,
          headers: { Authorization: `Bearer ${reader.token}` },
        })
      const answers = await Promise.all([promote(revision), promote(revision), promote(revision)])
      answers.push(await promote(revision))
      const id = answers[0]!.json!.id as number
      for (const { json } of answers) assert.deepEqual(json, { ok: true, id, promoted_from: revision })
      assert.ok(id > revision)
      const found = async () => {
        const { event } = (await reader.json(`/v1/inbox/events/${id}`)) as { event: Json }
        const list = await reader.all('/v1/inbox/conversations?channel_ref=promote/b', 'conversations')
        return { event, list, events: idsOf(await reader.all(`/v1/inbox/conversations/${id}/events`, 'events')) }
      }
      const before = await found()
      const { kind, origin, promoted_from: from, source_ref: ref, conversation_id: conversation } = before.event
      assert.deepEqual([kind, origin, from, ref, conversation], ['event', 'promotion', revision, null, id])
      assert.deepEqual(before.events, [id])
      assert.equal(before.list[0]?.last_snippet, 'really another')
      assert.equal((await reader.get(`/v1/inbox/events/${id}/payload`)).text, body)
      assert.deepEqual(idsOf(await reader.all('/v1/inbox/events?q=really+another&kind=event', 'events')), [id])
      await app.store.index.requestRebuild()
      await app.indexed()
      assert.deepEqual(await found(), before)
      // What is an event already is told so; its revisions are as before.
      const refused = await promote(first)
      assert.deepEqual([refused.status, refused.json?.error], [400, 'invalid_request'])
      const again = await reader.json(`/v1/inbox/events/${first}/revisions`)
      assert.deepEqual(again.revisions, revisions)
    })
  })
}

// A message whose fields begin behind INTRAY_EXTRACT_BYTES: stored whole, deduplicated by its reference, listed without those fields.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestApp } from '../support/app.ts'
import { drivers } from '../support/drivers.ts'
import { type Json, readerOf } from '../support/inbox.ts'
import { idOf } from '../support/intake.ts'

for (const driver of drivers) {
  test(`${driver.name}: references are found anywhere in a message, other fields before the limit`, async (t) => {
    const app = await startTestApp(t, driver, { settings: { extractBytes: '1024' } })
    const reader = await readerOf(app)
    const fields = (ref: string) => ({ source_ref: ref, channel_ref: 'page', contact: { name: 'Ada' }, meta: [] })
    const track = new Array<number>(2000).fill(7)
    const late = { track, ...fields('late') }
    const answer = await app.post(late)
    const control = { ...fields('early'), track }
    const ids = [idOf(answer), idOf(await app.post(control))]
    assert.equal(idOf(await app.post(late)), ids[0], 'a duplicate')
    assert.match(String(answer.headers['intray-warnings']), /meta/, 'intake reads all of it')

    const { events } = (await reader.json('/v1/inbox/events')) as { events: Json[] }
    assert.deepEqual(
      events.toReversed().map(({ id, source_ref: ref, conversation_id: conversation, contact, warnings }) => {
        return { id, ref, conversation, contact, warned: (warnings as Json[]).length }
      }),
      [
        { id: ids[0], ref: 'late', conversation: ids[0], contact: { name: null, email: null }, warned: 0 },
        { id: ids[1], ref: 'early', conversation: ids[0], contact: { name: 'Ada', email: null }, warned: 1 },
      ],
    )
    assert.deepEqual((await reader.json(`/v1/inbox/events/${ids[0]}`)).payload, late)
    const ofAda = (await reader.json('/v1/inbox/events?q=ada')) as { events: Json[] }
    assert.deepEqual(
      ofAda.events.map(({ id }) => id),
      [ids[1]],
    )
  })
}

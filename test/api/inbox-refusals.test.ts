import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { drivers } from '../support/drivers.ts'
import { idsOf, type Json, readerOf } from '../support/inbox.ts'
import { sharedApp } from '../support/shared-app.ts'
import { until } from '../support/until.ts'

for (const driver of drivers) {
  describe(`reading refusals on ${driver.name}`, () => {
    const shared = sharedApp(driver)

    test('newest first, by pages, with reason and body; bytes that are no text are shown all the same', async () => {
      const { app } = shared
      const reader = await readerOf(app)
      await app.post('{"half":')
      await app.post({ source_ref: 1.5 })
      await app.post(new Uint8Array([0xff, 0x41]))
      const rows = await until('all refusals are kept', async () => {
        const found = await reader.all('/v1/inbox/refusals?limit=2', 'refusals')
        return found.length === 3 && found
      })
      assert.deepEqual(
        idsOf(rows),
        idsOf(rows).toSorted((x, y) => y - x),
      )
      assert.deepEqual(
        rows.map(({ error, body, body_size: size }) => [error, body, size]),
        [
          ['invalid_json', '\uFFFDA', 2],
          ['invalid_payload', '{"source_ref":1.5}', 18],
          ['invalid_json', '{"half":', 8],
        ],
      )
      const headers = rows[0]!.headers as Json
      assert.equal(headers['content-type'], 'application/json')
      assert.ok(!JSON.stringify(rows).includes(app.token))
    })
  })
}

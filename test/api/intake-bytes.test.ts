import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { drivers } from '../support/drivers.ts'
import { INTAKE_PATHS, idOf, postTo } from '../support/intake.ts'
import { chunked, exchange, postHeaders, rawRequest } from '../support/raw.ts'
import { sharedApp } from '../support/shared-app.ts'

const MIB = 1_048_576

function nested(levels: number, open: string, close: string): string {
  return `{"a":${open.repeat(levels)}0${close.repeat(levels)}}`
}

function padded(size: number): string {
  const frame = '{"text":""}'
  return `{"text":"${'x'.repeat(size - frame.length)}"}`
}

const BODIES: Record<string, string> = {
  'numbers that JavaScript cannot hold':
    '{"n":12345678901234567890,"m":0.1000000000000000055,"e":1e400,"z":-0,"f":1.0}',
  'duplicate keys': '{"a":1,"a":2,"b":{"c":1,"c":[]},"a":3}',
  escapes: '{"a":"\\u0041\\/\\b\\f\\n\\r\\t\\"\\\\","\\u0062":"\\u00e9\\u00E9"}',
  'the order of keys': '{"z":1,"10":2,"a":3,"2":4,"_":5}',
  'white space': ' \r\n\t{ "a" :\t1 ,\r\n "b" : [ ] } \n\n',
  'a byte order mark': '\ufeff{"a":"\ufeff"}',
  emoji: '{"a":"\u{1F468}\u200D\u{1F469}\u200D\u{1F467} \u{1F600}","\u{1F600}":"\u0416\u4e2d\u0627"}',
  'U+0000 as an escape': '{"a":"\\u0000","\\u0000":1}',
  'lone surrogate escapes': '{"a":"\\ud800","b":"\\udfff\\ud83d","\\ud800":null}',
  'keys that mean something to JavaScript': '{"__proto__":{"a":1},"constructor":{"prototype":1},"toString":null}',
  'text in two normal forms': '{"a":"e\u0301 \u00e9 \u212b \ufb01"}',
  'line separators': '{"a":"\u2028\u2029\u0085"}',
  'markup and quotes': '{"a":"<script>alert(1)</script>\'; DROP TABLE events; --"}',
  '5,000 levels of arrays': nested(5000, '[', ']'),
  '5,000 levels of objects': nested(5000, '{"a":', '}'),
  '100,000 levels of arrays': nested(100_000, '[', ']'),
  '100,000 levels of objects': nested(100_000, '{"a":', '}'),
  '5,000 levels inside the fields that are indexed': `{"contact":${nested(5000, '[', ']')},"message":{"text":${nested(5000, '{"a":', '}')}}}`,
  '100,000 keys': `{${Array.from({ length: 100_000 }, (_, index) => `"${index}":0`).join(',')}}`,
  'a megabyte': padded(MIB),
}

for (const driver of drivers) {
  for (const path of INTAKE_PATHS) {
    describe(`the bytes of POST ${path} on ${driver.name}`, () => {
      const shared = sharedApp(driver)

      const assertKept = async (id: number, bytes: Buffer) => {
        const { events } = shared.app.store
        const payload = Buffer.from((await events.payload(id))!)
        assert.ok(payload.equals(bytes), 'the bytes came back changed')
        const event = await events.find(id)
        assert.equal(event?.size, bytes.length)
        assert.ok(Buffer.from(event!.sha256).equals(hash('sha256', bytes, 'buffer')))
      }

      for (const [name, body] of Object.entries(BODIES)) {
        test(`come back as they were sent: ${name}`, async () => {
          const bytes = Buffer.from(body)
          assert.ok(bytes.length <= MIB)
          const answer = await postTo(shared.app, path, bytes)
          assert.equal(answer.status, 200)
          await assertKept(idOf(answer), bytes)
        })
      }

      test('come back as they were sent: by chunks', async () => {
        for (const [name, body] of Object.entries(BODIES)) {
          const bytes = Buffer.from(body)
          const headers = [...postHeaders(shared.app.token), 'Transfer-Encoding: chunked']
          const inChunks = chunked(bytes, bytes.length < 1000 ? 1 : 16_000)
          const request = rawRequest({ target: path, headers, body: inChunks, sized: false })
          const answer = await exchange(shared.app.port, 'POST', path, request)
          assert.equal(answer.status, 200, name)
          await assertKept(idOf(answer), bytes)
        }
      })

      test('come back as they were before compression', async () => {
        for (const [name, body] of Object.entries(BODIES)) {
          const bytes = Buffer.from(body)
          const answer = await postTo(shared.app, path, gzipSync(bytes), { 'Content-Encoding': 'gzip' })
          assert.equal(answer.status, 200, name)
          await assertKept(idOf(answer), bytes)
        }
      })

      test('are indexed, or marked as not indexable, and so is what follows', async () => {
        const { app } = shared
        const last = idOf(await postTo(app, path, '{"contact":{"name":"Last"}}'))
        await app.indexed()
        for (let id = 1; id <= last; id += 1) {
          const event = await app.store.events.find(id)
          if (event) assert.notEqual(await app.store.events.indexEntry(event), null, `event ${id}`)
        }
        const event = await app.store.events.find(last)
        assert.equal((await app.store.events.indexEntry(event!))?.contactName, 'Last')
      })
    })
  }
}

import assert from 'node:assert/strict'
import http from 'node:http'
import { describe, test } from 'node:test'
import { mintToken } from '../../src/auth/token.ts'
import type { TestApp } from '../support/app.ts'
import type { TestAnswer } from '../support/client.ts'
import { drivers } from '../support/drivers.ts'
import {
  INTAKE_PATHS,
  idOf,
  jsonHeaders,
  postTo,
  revisionsOf,
  rowsBetween,
  rowsStoredDuring,
} from '../support/intake.ts'
import { exchange, postHeaders, rawRequest } from '../support/raw.ts'
import { sharedApp } from '../support/shared-app.ts'

const CONNECTIONS = 20

let lastRef = 0
/** A reference that no other case uses. */
function newRef(): string {
  lastRef += 1
  return `test:${lastRef}`
}

/** Posts all bodies over a few connections that stay open. */
async function postAll(app: TestApp, path: string, bodies: readonly string[]): Promise<TestAnswer[]> {
  const agent = new http.Agent({ keepAlive: true, maxSockets: CONNECTIONS })
  try {
    return await Promise.all(
      bodies.map((body) => app.send({ method: 'POST', path, headers: jsonHeaders(app.token), body, agent })),
    )
  } finally {
    agent.destroy()
  }
}

async function payloadOf(app: TestApp, id: number): Promise<string> {
  return Buffer.from((await app.store.events.payload(id)) ?? '').toString()
}

for (const driver of drivers) {
  for (const path of INTAKE_PATHS) {
    const otherPath = INTAKE_PATHS.find((one) => one !== path)!

    describe(`sending again to POST ${path} on ${driver.name}`, () => {
      const shared = sharedApp(driver)
      const post = (body: string, headers: Record<string, string | string[]> = {}, app = shared.app) =>
        postTo(app, path, body, headers)

      test('a first arrival answers exactly ok and id', async () => {
        const answer = await post(`{"source_ref":"${newRef()}"}`)
        assert.equal(answer.status, 200)
        assert.match(answer.text, /^\{"ok":true,"id":[1-9]\d*\}$/)
        assert.equal(answer.headers['content-type'], 'application/json; charset=utf-8')
        assert.equal(answer.headers['idempotent-replayed'], undefined)
      })

      test('the same bytes answer with the first id and say that they are a duplicate', async () => {
        const body = `{"source_ref":"${newRef()}"}`
        const id = idOf(await post(body))
        for (let count = 0; count < 3; count += 1) {
          const answer = await post(body)
          assert.equal(answer.status, 200)
          assert.equal(answer.text, `{"ok":true,"id":${id},"duplicate":true}`)
          assert.equal(answer.headers['idempotent-replayed'], 'true')
        }
      })

      test('other bytes answer with the first id, say that they conflict, and are kept as a revision', async () => {
        const { app } = shared
        const ref = newRef()
        const first = `{"source_ref":"${ref}","a":1}`
        const second = `{"source_ref":"${ref}","a":2}`
        const id = idOf(await post(first))
        const answer = await post(second)
        assert.equal(answer.status, 200)
        assert.equal(answer.text, `{"ok":true,"id":${id},"duplicate":true,"conflict":true}`)
        assert.equal(answer.headers['idempotent-replayed'], undefined, 'these bytes were not stored before')
        assert.equal(await payloadOf(app, id), first)
        const [revision, ...more] = await revisionsOf(app, id)
        assert.equal(more.length, 0)
        assert.equal(revision?.kind, 'revision')
        assert.equal(revision?.revises, id)
        assert.equal(await payloadOf(app, revision!.id), second)
      })

      test('bytes that differ in white space alone are other bytes', async () => {
        const ref = newRef()
        await post(`{"source_ref":"${ref}"}`)
        assert.equal((await post(`{"source_ref": "${ref}"}`)).json?.conflict, true)
      })

      test('the bytes of the first or of a kept revision add no row', async () => {
        const { app } = shared
        const ref = newRef()
        const bodies = [1, 2, 3].map((n) => `{"source_ref":"${ref}","n":${n}}`)
        const id = idOf(await post(bodies[0]!))
        await post(bodies[1]!)
        await post(bodies[2]!)
        const rows = await rowsStoredDuring(app, async () => {
          for (const body of [...bodies, ...bodies.toReversed()]) {
            const answer = await post(body)
            assert.equal(idOf(answer), id)
            assert.equal(answer.json?.conflict, body === bodies[0] ? undefined : true)
            assert.equal(answer.headers['idempotent-replayed'], body === bodies[0] ? 'true' : undefined)
          }
        })
        assert.deepEqual(rows, [])
        assert.equal((await revisionsOf(app, id)).length, 2)
      })

      test('how often it was sent again is counted once indexed', async () => {
        const { app } = shared
        const ref = newRef()
        const id = idOf(await post(`{"source_ref":"${ref}"}`))
        await post(`{"source_ref":"${ref}"}`)
        await post(`{"source_ref":"${ref}"}`)
        await post(`{"source_ref":"${ref}","n":1}`)
        await app.indexed()
        const event = await app.store.events.find(id)
        const repeats = await app.store.events.repeats(event!)
        assert.equal(repeats?.resends, 2)
        assert.equal(repeats?.revisions, 1)
      })

      test('a reference is compared exactly: case, white space and normal form count', async () => {
        const ref = newRef()
        const refs = [ref, ref.toUpperCase(), ` ${ref}`, `${ref} `, `${ref}\\u00e9`, `${ref}e\\u0301`, `${ref}\u200b`]
        const ids = await Promise.all(refs.map(async (one) => idOf(await post(`{"source_ref":"${one}"}`))))
        assert.equal(new Set(ids).size, refs.length)
      })

      test('a reference written with escapes is the same reference', async () => {
        const ref = newRef()
        const id = idOf(await post(`{"source_ref":"${ref}"}`))
        const escaped = ref.replace('t', '\\u0074')
        assert.equal(idOf(await post(`{"source_ref":"${escaped}"}`)), id)
      })

      test('what was sent to one address is a duplicate at the other', async () => {
        const { app } = shared
        const body = `{"source_ref":"${newRef()}"}`
        const id = idOf(await post(body))
        const answer = await postTo(app, otherPath, body)
        assert.equal(answer.text, `{"ok":true,"id":${id},"duplicate":true}`)
      })

      test('compressed or not, the bytes are the same', async () => {
        const { gzipSync } = await import('node:zlib')
        const body = `{"source_ref":"${newRef()}"}`
        const id = idOf(await post(body))
        const headers = { 'Content-Encoding': 'gzip' }
        const answer = await postTo(shared.app, path, gzipSync(body), headers)
        assert.equal(answer.text, `{"ok":true,"id":${id},"duplicate":true}`)
      })

      test('a refused request claims no reference', async () => {
        const ref = newRef()
        assert.equal((await post(`{"source_ref":"${ref}","channel_ref":1.5}`)).status, 422)
        assert.equal((await post(`{"source_ref":"${ref}"}`)).json?.duplicate, undefined)
      })

      test('200 re-sends at once from 20 connections: all answer 200 with one id, and there is one event', async () => {
        const { app } = shared
        const body = `{"source_ref":"${newRef()}","message":{"text":"Hello"}}`
        const before = idOf(await post('{}'))
        const answers = await postAll(app, path, Array<string>(200).fill(body))
        const after = idOf(await post('{}'))
        assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]))
        assert.equal(new Set(answers.map(idOf)).size, 1)
        assert.equal(answers.filter(({ json }) => json?.duplicate === undefined).length, 1)
        assert.equal(answers.filter(({ headers }) => headers['idempotent-replayed'] === 'true').length, 199)
        assert.equal((await rowsBetween(app, before, after)).length, 1)
      })

      test('1,000 different bodies under one reference: all answer 200, one event, 999 revisions, no byte lost', async () => {
        const { app } = shared
        const ref = newRef()
        const bodies = Array.from(
          { length: 1000 },
          (_, n) => `{"source_ref":"${ref}","n":${n},"pad":"${'x'.repeat(n % 97)}"}`,
        )
        const before = idOf(await post('{}'))
        const answers = await postAll(app, path, bodies)
        const after = idOf(await post('{}'))
        assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]))
        const ids = new Set(answers.map(idOf))
        assert.equal(ids.size, 1)
        const [id] = ids
        const rows = await rowsBetween(app, before, after)
        assert.equal(rows.filter(({ kind }) => kind === 'event').length, 1)
        const revisions = await revisionsOf(app, id!)
        assert.equal(revisions.length, 999)
        assert.ok(revisions.every(({ revises }) => revises === id))
        const kept = await Promise.all([id!, ...revisions.map((row) => row.id)].map((row) => payloadOf(app, row)))
        assert.deepEqual(new Set(kept), new Set(bodies))
      })

      test('1,000 posts with an empty source_ref are 1,000 events', async () => {
        const { app } = shared
        const before = idOf(await post('{}'))
        const answers = await postAll(app, path, Array<string>(1000).fill('{"source_ref":""}'))
        const after = idOf(await post('{}'))
        assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]))
        assert.equal(new Set(answers.map(idOf)).size, 1000)
        assert.ok(answers.every(({ json }) => json?.duplicate === undefined))
        assert.equal((await rowsBetween(app, before, after)).length, 1000)
      })

      test('an absent source_ref never dedupes, however it is absent', async () => {
        for (const body of ['{}', '{"source_ref":null}', '{"source_ref":"  "}', '{"channel_ref":"c"}']) {
          assert.notEqual(idOf(await post(body)), idOf(await post(body)), body)
        }
      })

      test('two companies with the same source_ref are two events', async () => {
        const { app } = shared
        const body = `{"source_ref":"${newRef()}"}`
        const id = idOf(await post(body))
        const other = await app.createToken({ companyId: 43 })
        const answer = await post(body, { Authorization: `Bearer ${other}` })
        assert.equal(answer.json?.duplicate, undefined)
        assert.notEqual(idOf(answer), id)
        assert.equal((await app.store.events.find(idOf(answer)))?.companyId, 43)
      })

      test('one company under two accounts are two tenants', async () => {
        const { app } = shared
        const body = `{"source_ref":"${newRef()}"}`
        const id = idOf(await post(body))
        const other = await app.createToken({ accountId: 8 })
        const answer = await post(body, { Authorization: `Bearer ${other}` })
        assert.equal(answer.json?.duplicate, undefined)
        assert.notEqual(idOf(answer), id)
      })

      test('tenants whose numbers run together are two tenants', async () => {
        const { app } = shared
        const body = `{"source_ref":"${newRef()}"}`
        const ids = new Set<number>()
        for (const [accountId, companyId] of [
          [1, 11],
          [11, 1],
          [111, 1],
        ] as const) {
          const token = await app.createToken({ accountId, companyId })
          ids.add(idOf(await post(body, { Authorization: `Bearer ${token}` })))
        }
        assert.equal(ids.size, 3)
      })

      test('another token of the tenant, and one made by rotation, dedupe all the same', async () => {
        const { app } = shared
        const body = `{"source_ref":"${newRef()}"}`
        const id = idOf(await post(body))
        const { keyId, token, hash } = mintToken()
        const old = await app.createToken()
        const rotatedFrom = old.split('_')[1]!
        const now = Date.now()
        const successor = { keyId, hash, accountId: 7, companyId: 42, scope: 'cf', label: '', expiresAt: null }
        await app.store.tokens.rotate({ ...successor, createdAt: now, rotatedFrom }, null, now)
        for (const other of [token, await app.createToken({ scope: 'bot' })]) {
          const answer = await post(body, { Authorization: `Bearer ${other}` })
          assert.equal(answer.text, `{"ok":true,"id":${id},"duplicate":true}`)
        }
      })
    })

    describe(`Idempotency-Key of POST ${path} on ${driver.name}`, () => {
      const shared = sharedApp(driver)
      const post = (body: string, key: string | string[]) => postTo(shared.app, path, body, { 'Idempotency-Key': key })

      test('serves as dedupe key where source_ref is absent', async () => {
        const key = newRef()
        const first = await post('{"a":1}', key)
        assert.match(first.text, /^\{"ok":true,"id":\d+\}$/)
        const id = idOf(first)
        const again = await post('{"a":1}', key)
        assert.equal(again.text, `{"ok":true,"id":${id},"duplicate":true}`)
        assert.equal(again.headers['idempotent-replayed'], 'true')
        assert.equal((await post('{"a":2}', key)).text, `{"ok":true,"id":${id},"duplicate":true,"conflict":true}`)
        assert.equal((await shared.app.store.events.find(id))?.idempotencyKey, key)
      })

      test('quoted and bare are the same key', async () => {
        const key = newRef()
        const id = idOf(await post('{}', key))
        assert.equal(idOf(await post('{}', `"${key}"`)), id)
        assert.equal(idOf(await post('{}', `  ${key}  `)), id)
      })

      test('is a key space of its own: the same text as a source_ref is another message', async () => {
        const key = newRef()
        const byKey = idOf(await post('{}', key))
        const byRef = await postTo(shared.app, path, `{"source_ref":"${key}"}`)
        assert.equal(byRef.json?.duplicate, undefined)
        assert.notEqual(idOf(byRef), byKey)
      })

      test('is ignored where there is a source_ref', async () => {
        const ref = newRef()
        const body = `{"source_ref":"${ref}"}`
        const key = newRef()
        const id = idOf(await post(body, key))
        assert.equal(idOf(await post(body, newRef())), id, 'another key changes nothing')
        const other = await post(`{"source_ref":"${newRef()}"}`, key)
        assert.equal(other.json?.duplicate, undefined, 'the same key makes no duplicate')
        assert.equal((await post('{}', key)).json?.duplicate, undefined, 'nor did it claim the key')
      })

      test('belongs to the tenant', async () => {
        const key = newRef()
        const id = idOf(await post('{}', key))
        const token = await shared.app.createToken({ companyId: 77 })
        const headers = { 'Idempotency-Key': key, Authorization: `Bearer ${token}` }
        assert.notEqual(idOf(await postTo(shared.app, path, '{}', headers)), id)
      })

      test('counts as absent when it is empty or white space', async () => {
        for (const key of ['', '""', '" "']) {
          assert.notEqual(idOf(await post('{}', key)), idOf(await post('{}', key)), JSON.stringify(key))
        }
      })

      test('200: 255 characters, quoted or not', async () => {
        const key = newRef().padEnd(255, 'x')
        const id = idOf(await post('{}', key))
        assert.equal(idOf(await post('{}', `"${key}"`)), id)
        assert.equal((await shared.app.store.events.find(id))?.idempotencyKey, key)
      })

      const UNUSABLE: Record<string, readonly string[]> = {
        'too long': ['x'.repeat(256)],
        'too long in quotes': [`"${'x'.repeat(256)}"`],
        'not ASCII': ['caf\u00e9'],
        'a tab in it': ['a\tb'],
        'sent twice': ['a', 'b'],
        'sent twice, equal': ['a', 'a'],
      }
      for (const [name, keys] of Object.entries(UNUSABLE)) {
        test(`400 without a source_ref, and ignored with one: ${name}`, async () => {
          const { app } = shared
          const send = (body: string) => {
            const headers = [...postHeaders(app.token), ...keys.map((key) => `Idempotency-Key: ${key}`)]
            return exchange(app.port, 'POST', path, rawRequest({ target: path, headers, body }))
          }
          const rows = await rowsStoredDuring(app, async () => {
            const refused = await send('{"source_ref":null}')
            assert.equal(refused.status, 400)
            assert.equal(refused.json?.error, 'invalid_request')
            assert.match(String(refused.json?.message), /Idempotency-Key/)
          })
          assert.deepEqual(rows, [])
          const accepted = await send(`{"source_ref":"${newRef()}"}`)
          assert.equal(accepted.status, 200)
          assert.equal((await app.store.events.find(idOf(accepted)))?.idempotencyKey, null)
        })
      }
    })
  }
}

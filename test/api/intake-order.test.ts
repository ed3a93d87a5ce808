// Checks run in a fixed order and the first failure answers. Every request here has up to three faults at once, or all
// from one on, and is sent to a service that is full as well: the last fault of all.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Store } from '../../src/store/contract/store.ts'
import type { TestAnswer } from '../support/client.ts'
import { drivers } from '../support/drivers.ts'
import { INTAKE_PATHS, jsonHeaders } from '../support/intake.ts'
import { chunked, exchange, rawRequest } from '../support/raw.ts'
import { sharedApp } from '../support/shared-app.ts'

const MAX_BODY_BYTES = 1024

interface Sketch {
  method: string
  path: string
  headers: Record<string, string>
  isJson: boolean
  refs: string
  padding: number
}

interface Fault {
  readonly name: string
  readonly status: number
  readonly error: string
  readonly apply: (request: Sketch, tokens: { processor: string }) => void
}

/** In the order of the checks. */
const FAULTS: readonly Fault[] = [
  { name: 'framing', status: 400, error: 'invalid_request', apply: (r) => (r.headers.Host = 'another.test') },
  { name: 'path', status: 404, error: 'not_found', apply: (r) => (r.path = '/v1/inbox/nowhere') },
  { name: 'method', status: 405, error: 'method_not_allowed', apply: (r) => (r.method = 'PUT') },
  { name: 'token', status: 401, error: 'invalid_token', apply: (r) => (r.headers.Authorization = 'Bearer nonsense') },
  {
    name: 'scope',
    status: 403,
    error: 'forbidden_scope',
    apply: (r, { processor }) => (r.headers.Authorization = `Bearer ${processor}`),
  },
  {
    name: 'encoding',
    status: 415,
    error: 'unsupported_encoding',
    apply: (r) => (r.headers['Content-Encoding'] = 'br'),
  },
  {
    name: 'media type',
    status: 415,
    error: 'unsupported_media_type',
    apply: (r) => (r.headers['Content-Type'] = 'text/html'),
  },
  { name: 'size', status: 413, error: 'payload_too_large', apply: (r) => (r.padding = MAX_BODY_BYTES) },
  { name: 'JSON', status: 400, error: 'invalid_json', apply: (r) => (r.isJson = false) },
  { name: 'refs', status: 422, error: 'invalid_payload', apply: (r) => (r.refs = '"source_ref":true') },
]
const CAPACITY = { name: 'capacity', status: 503, error: 'overloaded' }

/** All sets of one, two and three faults, and all from each one on. */
function faultSets(): Fault[][] {
  const sets: Fault[][] = [[]]
  for (let size = 0, from = 0; size < 3; size += 1) {
    const until = sets.length
    for (const set of sets.slice(from)) {
      const last = set.length === 0 ? -1 : FAULTS.indexOf(set.at(-1)!)
      for (const fault of FAULTS.slice(last + 1)) sets.push([...set, fault])
    }
    from = until
  }
  return [...sets, ...FAULTS.map((_, index) => FAULTS.slice(index))]
}

function requestOf({ method, path, headers, isJson, refs, padding }: Sketch, inChunks: boolean): Buffer {
  const body = `{${refs},"text":"${'x'.repeat(padding)}"${isJson ? '}' : ''}`
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  return inChunks
    ? rawRequest({
        method,
        target: path,
        headers: [...lines, 'Transfer-Encoding: chunked'],
        body: chunked(body, 700),
        sized: false,
      })
    : rawRequest({ method, target: path, headers: lines, body })
}

for (const driver of drivers) {
  describe(`the order of checks on ${driver.name}`, () => {
    const gate = Promise.withResolvers<void>()
    const reached = Promise.withResolvers<void>()
    const wrapStore = (store: Store): Store => ({
      ...store,
      traits: { ...store.traits, appendsInFlight: 1 },
      journal: {
        append: async (items) => {
          reached.resolve()
          await gate.promise
          return store.journal.append(items)
        },
      },
    })
    const waiting: Promise<TestAnswer>[] = []
    // Registered before the service's own, which waits for what is in flight.
    after(async () => {
      gate.resolve()
      await Promise.all(waiting)
    })
    const shared = sharedApp(driver, {
      settings: { maxBodyBytes: String(MAX_BODY_BYTES), queueMaxEvents: '1', failedTokenLimit: 'off' },
      wrapStore,
    })
    let processor = ''

    before(async () => {
      const { app } = shared
      processor = await app.createToken({ scope: 'processor' })
      // One in the commit that does not end, and there is room for one: from now on it is full.
      waiting.push(app.post('{}'))
      await reached.promise
      const two = [app.post('{}'), app.post('{}')]
      waiting.push(...two)
      assert.equal((await Promise.race(two)).json?.error, 'overloaded')
    })

    for (const path of INTAKE_PATHS) {
      for (const inChunks of [false, true]) {
        test(`POST ${path}, ${inChunks ? 'chunked' : 'fixed length'}: the earliest of several faults answers`, async () => {
          const { app } = shared
          const wrong: string[] = []
          for (const faults of faultSets()) {
            const sketch: Sketch = {
              method: 'POST',
              path,
              headers: jsonHeaders(app.token),
              isJson: true,
              refs: '"channel_ref":"c"',
              padding: 0,
            }
            for (const fault of faults.toReversed()) fault.apply(sketch, { processor })
            const answer = await exchange(app.port, sketch.method, sketch.path, requestOf(sketch, inChunks))
            const expected = faults[0] ?? CAPACITY
            const names = [...faults.map(({ name }) => name), CAPACITY.name].join(' + ')
            if (answer.json?.error !== expected.error || answer.status !== expected.status) {
              wrong.push(`${names}: ${answer.status} ${answer.json?.error}, not ${expected.error}`)
            }
          }
          assert.deepEqual(wrong, [])
        })
      }

      test(`POST ${path}: an unknown Expect is told before the token is looked at`, async () => {
        const answer = await shared.app.send({ method: 'POST', path, headers: { Expect: 'tea' }, body: '{}' })
        assert.equal(answer.status, 417)
        assert.equal(answer.json?.error, 'expectation_failed')
      })
    }
  })
}

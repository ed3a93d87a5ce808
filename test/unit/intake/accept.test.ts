import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Arrival, createAccept } from '../../../src/intake/accept.ts'
import type { AppendItem } from '../../../src/store/contract/append.ts'

const LARGE = Buffer.from(`{"a":"${'x'.repeat(1_000_000)}"}`)
const SMALL = Buffer.from('{"source_ref":"small"}')

const arrivalOf = (companyId: number, payload: Buffer): Arrival => ({
  principal: { keyId: 'key', accountId: 1, companyId, scope: 'cf' },
  route: '/v1/inbox/events',
  requestId: 'request',
  payload,
  contentType: 'application/json',
  idempotencyKeys: [],
  traceparent: null,
  userAgent: null,
  remoteAddr: null,
})

/** What is stored, in its order. */
function harness() {
  const stored: AppendItem[] = []
  const accept = createAccept({
    clock: { now: () => 0 },
    submit: (item) => {
      stored.push(item)
      return Promise.resolve({ outcome: 'stored', id: stored.length })
    },
  })
  return { stored, accept }
}

test('a small message is validated and submitted at once', () => {
  const { stored, accept } = harness()
  void accept(arrivalOf(1, SMALL))
  assert.deepEqual(
    stored.map(({ sourceRef }) => sourceRef),
    ['small'],
  )
})

test('a message does not wait for the large ones of another tenant', async () => {
  const { stored, accept } = harness()
  const all = [...Array.from({ length: 10 }, () => accept(arrivalOf(1, LARGE))), accept(arrivalOf(2, SMALL))]
  await Promise.all(all)
  assert.equal(
    stored.findIndex(({ companyId }) => companyId === 2),
    0,
  )
  assert.equal(stored.length, 11)
})

test('control: a tenant waits for its own, whose order is kept', async () => {
  const { stored, accept } = harness()
  const all = [...Array.from({ length: 10 }, () => accept(arrivalOf(1, LARGE))), accept(arrivalOf(1, SMALL))]
  await Promise.all(all)
  assert.equal(
    stored.findIndex(({ payload }) => payload === SMALL),
    10,
  )
})

test('the event loop goes on while a large body is validated', async () => {
  const { accept } = harness()
  let turns = 0
  let isDone = false
  const count = () => {
    turns += 1
    if (!isDone) setImmediate(count)
  }
  setImmediate(count)
  await accept(arrivalOf(1, LARGE))
  isDone = true
  assert.ok(turns >= Math.floor(LARGE.length / 65_536) - 1, `${turns} turns`)
})

test('warnings come with the receipt, and only if there are any', async () => {
  const { accept } = harness()
  assert.deepEqual(await accept(arrivalOf(1, SMALL)), { outcome: 'stored', id: 1 })
  const warned = await accept(arrivalOf(1, Buffer.from('{"contact":[]}')))
  assert.deepEqual('warnings' in warned && warned.warnings, [{ path: '/contact', expected: 'object', got: 'array' }])
})

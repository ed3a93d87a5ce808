import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { createAwaitIndex, MAX_WAIT_MS } from '../../../src/indexing/await-index.ts'
import type { Coverage } from '../../../src/store/contract/inbox.ts'

const at = (newest: number, covered: number, resends = 0, words = covered): Coverage => ({
  newest: { events: newest, resends },
  covered: { events: covered, resends: 0, words },
})

/** A node that does not index: only the time passes. */
const stepped = (ms: number) => pause(ms)

/** A machine may be slow. */
const PATIENT = { stepped, maxWaitMs: 600_000 }

/** An inbox that is asked for its coverage again and again. */
function inboxOf(coverages: readonly Coverage[]) {
  let asked = 0
  return { coverage: async () => coverages[Math.min(asked++, coverages.length - 1)]!, asked: () => asked }
}

test('an index that covers everything is not waited for', async () => {
  const inbox = inboxOf([at(5, 5)])
  let woken = 0
  assert.equal(await createAwaitIndex({ inbox, hurry: () => woken++, stepped })(), 0)
  assert.deepEqual([inbox.asked(), woken], [1, 0])
})

test('one that lags is woken, and waited for until it covers what there was at first', async () => {
  const inbox = inboxOf([at(5, 3), at(6, 4), at(9, 5)])
  let woken = 0
  assert.equal(await createAwaitIndex({ ...PATIENT, inbox, hurry: () => woken++ })(), 0)
  assert.deepEqual([inbox.asked(), woken], [3, 2])
})

test('after a while what is missing is told, re-sends included', async () => {
  const inbox = inboxOf([at(5, 3, 2)])
  assert.equal(await createAwaitIndex({ inbox, hurry: () => {}, stepped, maxWaitMs: 30 })(), 4)
  assert.equal(MAX_WAIT_MS, 2000, 'two seconds, as docs/processing/inbox.md says')
})

test('a search waits for the words, any other read for the entries alone', async () => {
  const searched = inboxOf([at(5, 5, 0, 3), at(6, 6, 0, 4), at(6, 6, 0, 5)])
  const asked: string[] = []
  const options = { ...PATIENT, inbox: searched, hurry: (needed: string) => asked.push(needed) }
  assert.equal(await createAwaitIndex(options)('words'), 0)
  assert.deepEqual([searched.asked(), asked], [3, ['words', 'words']])
  const listed = inboxOf([at(5, 5, 0, 3)])
  assert.equal(await createAwaitIndex({ ...options, inbox: listed })(), 0)
  assert.equal(listed.asked(), 1)
  const late = inboxOf([at(5, 5, 0, 3)])
  assert.equal(await createAwaitIndex({ ...options, inbox: late, maxWaitMs: 30 })('words'), 2)
})

test('a store that fails meanwhile fails the read', async () => {
  const inbox = { coverage: () => Promise.reject(new Error('gone')) }
  await assert.rejects(createAwaitIndex({ inbox, hurry: () => {}, stepped })(), /gone/)
})

test('the store is asked again after each step, without waiting for the interval, which grows', async () => {
  const inbox = inboxOf([at(5, 0), at(5, 1), at(5, 2), at(5, 3), at(5, 4), at(5, 5)])
  const intervals: number[] = []
  const atOnce = async (ms: number) => void intervals.push(ms)
  assert.equal(await createAwaitIndex({ ...PATIENT, inbox, hurry: () => {}, stepped: atOnce })(), 0)
  assert.deepEqual([inbox.asked(), intervals], [6, [2, 4, 8, 16, 32]])
})

test('many reads that arrive together ask the store twice: none takes an answer from before it arrived', async () => {
  const inbox = inboxOf([at(5, 5)])
  const awaitIndex = createAwaitIndex({ inbox, hurry: () => {}, stepped })
  await Promise.all(Array.from({ length: 100 }, () => awaitIndex()))
  assert.equal(inbox.asked(), 2)
})

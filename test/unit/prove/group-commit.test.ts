// Whether faults fell on group commit: what counts, and what a proof says when they did not.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readAppends, Strikes, untilGroupInFlight } from '../../../prove/group-commit.ts'
import { seededRandom } from '../../../prove/random.ts'

const LARGE = { appends: 10, large: 4, messages: 90 }
const SMALL = { appends: 10, large: 0, messages: 20 }

test('one fault on more than 8 messages is enough, and is told with the others', () => {
  const strikes = new Strikes('a kill')
  for (const inFlight of [3, 9, 1]) strikes.struck(inFlight)
  strikes.appended(LARGE)
  assert.deepEqual(strikes.problems(), [])
  assert.deepEqual(strikes.notes(), [
    '1 to 9 messages in flight at a kill, median 3; more than 8 at 1 of 3.',
    '10 appends of 9.0 messages on average; 4 held more than 8.',
  ])
})

test('faults on 8 messages or fewer, or none at all, are told to be not struck', () => {
  const strikes = new Strikes('a kill')
  assert.match(strikes.problems()[0]!, /^not struck: a kill never fell on more than 8/)
  strikes.struck(8)
  assert.equal(strikes.problems().length, 1)
})

test('a service that never appended more than 8 messages at once is told to be not struck', () => {
  const strikes = new Strikes('a kill')
  strikes.struck(64)
  strikes.appended(SMALL)
  assert.deepEqual(strikes.problems(), ['not struck: no append held more than 8 messages'])
  strikes.appended(LARGE)
  assert.deepEqual(strikes.problems(), [])
})

test('appends are read from the metrics; a service that does not tell them is an error', () => {
  const text = [
    'intray_append_events_bucket{le="4"} 5',
    'intray_append_events_bucket{le="8"} 7',
    'intray_append_events_bucket{le="+Inf"} 12',
    'intray_append_events_sum 130',
    'intray_append_events_count 12',
  ].join('\n')
  assert.deepEqual(readAppends(text), { appends: 12, large: 5, messages: 130 })
  assert.throws(() => readAppends('intray_ready 1'), /does not tell intray_append_events_count/)
})

test('a moment counts only if the group is still in flight', async () => {
  let looks = 0
  // In flight at the first look, gone at the next, and back for good.
  const load = {
    get inFlight() {
      looks += 1
      return looks === 1 || looks > 20 ? 9 : 0
    },
  }
  await untilGroupInFlight(load, seededRandom(1))
  assert.ok(looks > 20)
})

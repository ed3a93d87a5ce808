// When a server looks for damage in its index.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LookPauses } from '../../../../src/store/sqlite/damage.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE

/** Calls meet damage every minute. Returns the minutes in which looks began. */
function looksUntil(end: number, isRepaired: (look: number) => boolean): number[] {
  const pauses = new LookPauses()
  const looks: number[] = []
  for (let now = 0; now < end; now += MINUTE) {
    if (!pauses.begin(now)) continue
    looks.push(now / MINUTE)
    pauses.ended(isRepaired(looks.length))
  }
  return looks
}

test('damage in the journal asks for one look in ten minutes', () => {
  assert.deepEqual(
    looksUntil(35 * MINUTE, () => false),
    [0, 10, 20, 30],
  )
})

test('a disk that damages the index again and again makes its rebuilds rarer, down to one a day', () => {
  const looks = looksUntil(10 * DAY, () => true)
  assert.deepEqual(looks.slice(0, 5), [0, 10, 30, 70, 150])
  const last = looks.at(-1)! - looks.at(-2)!
  assert.equal(last, DAY / MINUTE)
})

test('a look that finds the index intact ends the longer pauses', () => {
  assert.deepEqual(
    looksUntil(90 * MINUTE, (look) => look < 4),
    [0, 10, 30, 70, 80],
  )
})

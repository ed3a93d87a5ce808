import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Shares } from '../../../src/runtime/shares.ts'

/** Takes one at a time until nothing more is given. */
function takeAll(shares: Shares, holder: string): number {
  let taken = 0
  // The very first is given in any case.
  while (taken < 10_000 && shares.take(holder, 1)) taken += 1
  return taken
}

test('one holder gets half, the next half of the rest, and there is always something left for another', () => {
  const shares = new Shares(800)
  const taken = ['a', 'b', 'c'].map((holder) => takeAll(shares, holder))
  assert.deepEqual(taken, [400, 200, 100])
  assert.equal(takeAll(shares, 'a'), 0)
  assert.ok(shares.take('late', 50))
  assert.equal(shares.held, 750)
})

test('what is given back can be taken again, by the same holder or by another', () => {
  const shares = new Shares(100)
  assert.equal(takeAll(shares, 'a'), 50)
  shares.giveBack('a', 50)
  assert.equal(shares.held, 0)
  assert.equal(takeAll(shares, 'b'), 50)
})

test('more than a share is given to the only one that holds anything', () => {
  const shares = new Shares(100)
  assert.ok(shares.take('a', 500))
  assert.ok(shares.take('a', 500, 500))
  assert.equal(shares.take('a', 1), false, 'for another purpose')
  assert.equal(shares.take('b', 1), false)
  shares.giveBack('a', 1000)
  assert.ok(shares.take('b', 50))
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FairQueue } from '../../../src/runtime/fair-queue.ts'

function drain<J>(queue: FairQueue<J>): J[] {
  const jobs: J[] = []
  for (let job = queue.next(); job !== undefined; job = queue.next()) jobs.push(job)
  return jobs
}

test('holders are served in turn, whatever each has waiting', () => {
  const queue = new FairQueue<string>()
  for (const n of [1, 2, 3]) queue.push('greedy', `greedy ${n}`)
  queue.push('modest', 'modest 1')
  assert.equal(queue.size, 4)
  assert.deepEqual(drain(queue), ['greedy 1', 'modest 1', 'greedy 2', 'greedy 3'])
  assert.equal(queue.size, 0)
})

test('a holder that comes back after its turn waits behind those that wait already', () => {
  const queue = new FairQueue<string>()
  queue.push('a', 'a1')
  queue.push('b', 'b1')
  assert.equal(queue.next(), 'a1')
  queue.push('a', 'a2')
  queue.push('c', 'c1')
  assert.deepEqual(drain(queue), ['b1', 'a2', 'c1'])
})

test('a job that goes on comes before the other jobs of its holder, and after other holders', () => {
  const queue = new FairQueue<string>()
  for (const job of ['a1', 'a2']) queue.push('a', job)
  queue.push('b', 'b1')
  assert.equal(queue.next(), 'a1')
  queue.putBack('a', 'a1 again')
  assert.deepEqual(drain(queue), ['b1', 'a1 again', 'a2'])
})

test('a holder may have a bounded number of jobs waiting, and does not use up the places of others', () => {
  const queue = new FairQueue<number>(2)
  assert.deepEqual(
    [1, 2, 3].map((n) => queue.push('a', n)),
    [true, true, false],
  )
  assert.equal(queue.push('b', 4), true)
  queue.next()
  assert.equal(queue.push('a', 5), true)
})

test('a removed job is not served, and leaves no empty turn', () => {
  const queue = new FairQueue<string>()
  queue.push('a', 'a1')
  queue.push('b', 'b1')
  assert.equal(queue.remove('a', 'a1'), true)
  assert.equal(queue.remove('a', 'a1'), false)
  assert.deepEqual(drain(queue), ['b1'])
})

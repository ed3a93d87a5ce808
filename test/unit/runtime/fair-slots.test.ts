import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { FairSlots } from '../../../src/runtime/fair-slots.ts'

/** Jobs that note when they begin and end when they are told to. */
function jobs() {
  const began: string[] = []
  const ends: (() => void)[] = []
  const job = (name: string) => () => {
    began.push(name)
    return new Promise<void>((resolve) => ends.push(resolve))
  }
  const endNext = async () => {
    ends.shift()?.()
    await nextTurn()
  }
  return { began, job, endNext }
}

test('so many jobs run at once, and waiting holders are served in turn', async () => {
  const { began, job, endNext } = jobs()
  const slots = new FairSlots({ slots: 2, maxPerHolder: 2, maxWaitingPerHolder: 10 })
  const running = [1, 2, 3, 4].map((n) => slots.run('greedy', job(`greedy ${n}`))!)
  running.push(slots.run('modest', job('modest 1'))!)
  await nextTurn()
  assert.deepEqual(began, ['greedy 1', 'greedy 2'])
  for (let n = 0; n < 5; n++) await endNext()
  await Promise.all(running)
  assert.deepEqual(began, ['greedy 1', 'greedy 2', 'greedy 3', 'modest 1', 'greedy 4'])
})

test('a holder may have so many jobs waiting, which does not count for others', async () => {
  const { job, endNext } = jobs()
  const slots = new FairSlots({ slots: 1, maxPerHolder: 1, maxWaitingPerHolder: 1 })
  const running = [slots.run('a', job('1'))!, slots.run('a', job('2'))!, slots.run('b', job('3'))!]
  assert.ok(running.every((one) => one instanceof Promise))
  assert.equal(slots.run('a', job('4')), null)
  for (let n = 0; n < 3; n++) await endNext()
  await Promise.all(running)
  assert.notEqual(
    slots.run('a', async () => {}),
    null,
  )
})

test('a job that fails gives its slot back', async () => {
  const slots = new FairSlots({ slots: 1, maxPerHolder: 1, maxWaitingPerHolder: 1 })
  await assert.rejects(slots.run('a', () => Promise.reject(new Error('no')))!, /no/)
  assert.equal(await slots.run('a', async () => 7), 7)
})

for (const { share, begun } of [
  { share: 1, begun: ['greedy 1', 'modest 1'] },
  { share: 2, begun: ['greedy 1', 'greedy 2'] },
]) {
  test(`a holder has at most its share of the slots: ${share} of 2`, async () => {
    const { began, job, endNext } = jobs()
    const slots = new FairSlots({ slots: 2, maxPerHolder: share, maxWaitingPerHolder: 10 })
    const running = [1, 2, 3].map((n) => slots.run('greedy', job(`greedy ${n}`))!)
    running.push(slots.run('modest', job('modest 1'))!)
    await nextTurn()
    assert.deepEqual(began, begun)
    for (let n = 0; n < 4; n++) await endNext()
    await Promise.all(running)
    assert.equal(began.length, 4)
  })
}

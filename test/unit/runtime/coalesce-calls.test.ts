import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { coalesceCalls } from '../../../src/runtime/coalesce-calls.ts'

/** Calls that are answered by hand, each with its number. */
function byHand() {
  const calls: PromiseWithResolvers<number>[] = []
  const ask = coalesceCalls(() => {
    const begun = Promise.withResolvers<number>()
    calls.push(begun)
    return begun.promise
  })
  return { calls, ask, answer: (n: number) => calls[n]!.resolve(n) }
}

describe('one question for all who ask it at the same time', () => {
  test('whoever asks while a call is under way gets the answer of the next, which is one for all of them', async () => {
    const { calls, ask, answer } = byHand()
    const first = ask()
    const others = Array.from({ length: 100 }, ask)
    await nextTurn()
    assert.equal(calls.length, 1, 'the next waits for the one under way')
    answer(0)
    assert.equal(await first, 0)
    await nextTurn()
    assert.equal(calls.length, 2)
    const later = ask()
    answer(1)
    assert.deepEqual(new Set(await Promise.all(others)), new Set([1]))
    await nextTurn()
    answer(2)
    assert.equal(await later, 2, 'the second had begun before it was asked for')
    assert.equal(calls.length, 3)
  })

  test('alone, each is a call of its own', async () => {
    const { calls, ask, answer } = byHand()
    for (const n of [0, 1, 2]) {
      const asked = ask()
      answer(n)
      assert.equal(await asked, n)
    }
    assert.equal(calls.length, 3)
  })

  test('a failure is told to those who asked for that call, and to nobody behind them', async () => {
    const { calls, ask, answer } = byHand()
    const first = ask()
    const second = ask()
    calls[0]!.reject(new Error('away'))
    await assert.rejects(first, /away/)
    await nextTurn()
    answer(1)
    assert.equal(await second, 1)
  })

  test('after a failure the next is asked', async () => {
    let asked = 0
    const ask = coalesceCalls(async () => {
      asked += 1
      if (asked === 1) throw new Error('away')
      return asked
    })
    await assert.rejects(ask(), /away/)
    assert.equal(await ask(), 2)
  })
})

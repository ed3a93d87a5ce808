// The delay between "not ready" and a closed port: as set, or as long as health checks of proxies need it.

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { ReadyDelay } from '../../../src/http/ready-delay.ts'

const PROXY = '10.0.0.1'
const OTHER = '10.0.0.2'
const AUTO_MAX_MS = 10_000

function newDelay(t: TestContext, readyDelay: number | 'auto' = 'auto') {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let now = 0
  const delay = new ReadyDelay({ readyDelay, autoMaxMs: AUTO_MAX_MS, trustedProxies: ['10.0.0.0/24'], now: () => now })
  let isOver = false
  const settle = async () => {
    for (let turn = 0; turn < 5; turn += 1) await Promise.resolve()
  }
  return {
    /** `times` questions of these, each `everyMs` after the one before. */
    ask: async (addresses: readonly (string | undefined)[], times: number, everyMs = 2000) => {
      for (let n = 0; n < times; n += 1) {
        now += everyMs
        for (const address of addresses) delay.asked(address)
      }
      await settle()
    },
    begin: async () => {
      void delay.pass().then(() => (isOver = true))
      await settle()
    },
    wait: async (ms: number) => {
      now += ms
      t.mock.timers.tick(ms)
      await settle()
    },
    isOver: () => isOver,
  }
}

test('auto: nobody asked, or once, or not for long, or no proxy: there is no delay', async (t) => {
  for (const [address, times, pauseMs] of [
    [PROXY, 0, 0],
    [PROXY, 1, 0],
    [PROXY, 5, 20_000],
    ['192.0.2.1', 5, 0],
    [undefined, 5, 0],
  ] as const) {
    await t.test(`${address} ${times} ${pauseMs}`, async (t) => {
      const { ask, begin, wait, isOver } = newDelay(t)
      await ask([address], times)
      await wait(pauseMs)
      await begin()
      assert.equal(isOver(), true)
    })
  }
})

test('auto: each proxy that asks regularly gets the answer three times', async (t) => {
  const { ask, begin, isOver } = newDelay(t)
  await ask([PROXY, OTHER], 2)
  await begin()
  await ask([PROXY], 5)
  assert.equal(isOver(), false, 'the other one does not know yet')
  await ask([OTHER], 2)
  assert.equal(isOver(), false)
  await ask([OTHER], 1)
  assert.equal(isOver(), true)
})

test('auto: a proxy that asks no more holds the stop for 10 seconds at most', async (t) => {
  const { ask, begin, wait, isOver } = newDelay(t)
  await ask([PROXY], 2)
  await begin()
  await wait(AUTO_MAX_MS - 1)
  assert.equal(isOver(), false)
  await wait(1)
  assert.equal(isOver(), true)
})

test('a duration is waited for, whoever asks or does not', async (t) => {
  const { ask, begin, wait, isOver } = newDelay(t, 5000)
  await begin()
  await ask([PROXY], 9)
  await wait(4999)
  assert.equal(isOver(), false)
  await wait(1)
  assert.equal(isOver(), true)
})

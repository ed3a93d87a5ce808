import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Signal } from '../../../src/runtime/signal.ts'
import { within } from '../../support/until.ts'

const LONG_MS = 3_600_000

test('a signal that was raised before wakes at once', async () => {
  const signal = new Signal()
  signal.raise()
  await within('the signal', signal.wait(LONG_MS))
})

test('a signal wakes the one who waits', async () => {
  const signal = new Signal()
  const woken = signal.wait(LONG_MS)
  signal.raise()
  await within('the signal', woken)
})

test('raised often, it wakes once', async () => {
  const signal = new Signal()
  signal.raise()
  signal.raise()
  await within('the signal', signal.wait(LONG_MS))
  let woken = false
  const second = signal.wait(LONG_MS).then(() => (woken = true))
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(woken, false)
  signal.raise()
  await within('the second signal', second)
})

test('raised while nobody waits, between two waits, it is not lost', async () => {
  const signal = new Signal()
  for (let count = 0; count < 100; count += 1) {
    const woken = signal.wait(LONG_MS)
    signal.raise()
    await within('the signal', woken)
    signal.raise()
    await within('the signal in between', signal.wait(LONG_MS))
  }
})

test('without a signal, the time ends the wait', async () => {
  await within('the time', new Signal().wait(1))
})

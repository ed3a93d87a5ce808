// The purge of a server: step after step, one run at a time, and later if somebody reads an old state.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ErasurePurge } from '../../../src/maintenance/erasure-purge.ts'

const DONE = { more: false, waits: false }
const MORE = { more: true, waits: false }
const WAITS = { more: true, waits: true }

function purgeOf(answers: readonly ((typeof DONE | Error) | (() => void))[]) {
  const left = [...answers]
  const troubles: string[] = []
  let calls = 0
  const purge = async () => {
    calls += 1
    const next = left.shift()
    if (next instanceof Error) throw next
    if (typeof next === 'function') next()
    return typeof next === 'object' ? next : MORE
  }
  const service = new ErasurePurge({ erasures: { purge }, onTrouble: (doing) => troubles.push(doing) })
  return { service, troubles, calls: () => calls }
}

test('a run goes on until nothing is left, and another call joins it', async () => {
  const { service, calls } = purgeOf([MORE, MORE, DONE])
  await Promise.all([service.run(), service.run()])
  assert.equal(calls(), 3)
})

test('a run ends where somebody reads an old state: the next one goes on', async () => {
  const { service, calls } = purgeOf([MORE, WAITS, DONE])
  await service.run()
  assert.equal(calls(), 2)
  await service.run()
  assert.equal(calls(), 3)
})

test('a failure is reported and ends the run; a stop ends it as well', async () => {
  const failing = purgeOf([new Error('no database')])
  await failing.service.run()
  assert.deepEqual(failing.troubles, ['remove erased content from the index and the files'])
  const endless = purgeOf([() => void endless.service.stop()])
  await endless.service.run()
  assert.equal(endless.calls(), 1)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LongPolls, type ClaimQueue } from '../../../src/processing/long-poll.ts'
import type { Readiness } from '../../../src/store/contract/processing.ts'
import { stopTime } from '../../support/clock.ts'

const queue = (companyId: number, ordered = true, channelRef: string | null = null): ClaimQueue => ({
  tenant: { accountId: 1, companyId },
  subscription: 'default',
  ordered,
  channelRef,
})
const NEVER = new AbortController().signal

/** Polls on queues that are ready for those companies; every look is noted. */
function polls(ready: Set<number>, at: number | null = null) {
  const looks: number[][] = []
  const service = new LongPolls({
    ready: async (queues) => {
      looks.push(queues.map(({ tenant }) => tenant.companyId))
      return queues.map(({ tenant }): Readiness => ({ ready: ready.has(tenant.companyId), at }))
    },
    now: () => 0,
    onTrouble: (doing, error) => assert.fail(`${doing}: ${error}`),
  })
  return { service, looks }
}

test('a hint wakes one of those whose queue is ready, the first that came, and nobody else', async () => {
  const ready = new Set<number>()
  const { service } = polls(ready)
  const woken: string[] = []
  const wait = (name: string, companyId: number) =>
    service.wait(queue(companyId), 20_000, NEVER, false).then((isReady) => isReady && woken.push(name))
  const first = wait('first', 1)
  const second = wait('second', 1)
  const other = wait('other', 2)
  ready.add(1)
  service.hint()
  await first
  assert.deepEqual(woken, ['first'])
  service.hint()
  await second
  assert.deepEqual(woken, ['first', 'second'])
  await service.stop()
  await other
  assert.deepEqual(woken, ['first', 'second'], 'a stop is nothing to claim for')
})

test('a hundred that wait share one look, and one entry for each queue', async (t) => {
  const pass = stopTime(t)
  const { service, looks } = polls(new Set())
  const waiting = Array.from({ length: 100 }, (_, n) => service.wait(queue(1 + (n % 3)), 1500, NEVER, false))
  await pass(1500)
  await Promise.all(waiting)
  assert.ok(looks.length >= 1 && looks.length <= 4, `${looks.length} looks in 1.5 s`)
  for (const look of looks) assert.deepEqual(look.toSorted(), [1, 2, 3])
  await service.stop()
})

test('it looks when the first lease or back-off is over', async (t) => {
  const pass = stopTime(t)
  const { service, looks } = polls(new Set(), 40)
  const waiting = service.wait(queue(1), 5000, NEVER, false)
  await pass(4990)
  // By the second there would be five in all that time.
  assert.ok(looks.length >= 7, `${looks.length} looks`)
  await service.stop()
  await waiting
})

test('who goes away, or whose time is over, waits no longer; a stop ends all, and all that come later', async (t) => {
  const pass = stopTime(t)
  const { service } = polls(new Set())
  const leaving = new AbortController()
  const gone = service.wait(queue(1), 20_000, leaving.signal, false)
  leaving.abort()
  assert.equal(await gone, false)
  const early = service.wait(queue(1), 10, NEVER, false)
  await pass(10)
  assert.equal(await early, true, 'the store has told nothing yet')
  const late = service.wait(queue(1), 400, NEVER, false)
  await pass(400)
  assert.equal(await late, false)
  const last = service.wait(queue(1), 20_000, NEVER, false)
  await service.stop()
  assert.equal(await last, false)
  assert.equal(await service.wait(queue(1), 20_000, NEVER, false), false)
  assert.ok(service.isStopped)
})

test('who was woken in vain is not woken again at once', async () => {
  const { service } = polls(new Set([1]))
  const began = performance.now()
  service.hint()
  await service.wait(queue(1), 5000, NEVER, true)
  assert.ok(performance.now() - began >= 240)
  await service.stop()
})

test('one look wakes one of each conversation that is waited for: nobody waits behind who finds nothing', async () => {
  const { service, looks } = polls(new Set([1]))
  const channels = Array.from({ length: 40 }, (_, n) => `page ${n}`)
  const all = channels.map((channel) => service.wait(queue(1, true, channel), 20_000, NEVER, false))
  service.hint()
  await Promise.all(all)
  assert.equal(looks.length, 1)
  await service.stop()
})

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type WriterJob, WriterQueue } from '../../../../src/store/sqlite/threads/writer-queue.ts'

let seq = 0
function job(name: WriterJob['name']): WriterJob {
  seq += 1
  return { seq, name, args: name === 'append' ? [{ metas: '[]', payloads: new Uint8Array(10) }] : [] }
}

function fill(...names: WriterJob['name'][]): WriterQueue {
  const queue = new WriterQueue()
  for (const name of names) queue.push(job(name))
  return queue
}

function drain(queue: WriterQueue): string[] {
  const names: string[] = []
  for (let next = queue.next(); next.length > 0; next = queue.next()) names.push(next.map(({ name }) => name).join('+'))
  return names
}

describe('the writer’s queue', () => {
  test('is empty at first and after the last job', () => {
    const queue = new WriterQueue()
    assert.ok(queue.isEmpty)
    assert.deepEqual(queue.next(), [])
    queue.push(job('append'))
    assert.ok(!queue.isEmpty)
    queue.next()
    assert.ok(queue.isEmpty)
  })

  test('takes control first, then intake', () => {
    const queue = fill('append', 'setTokenActive', 'append', 'probe')
    assert.deepEqual(drain(queue), ['setTokenActive', 'probe', 'append+append'])
  })

  test('takes jobs of one kind in their order', () => {
    const queue = new WriterQueue()
    const jobs = Array.from({ length: 5 }, () => job('probe'))
    for (const one of jobs) queue.push(one)
    for (const one of jobs) assert.deepEqual(queue.next(), [one])
  })

  test('takes all appends that are waiting together, in their order', () => {
    const queue = new WriterQueue()
    const jobs = Array.from({ length: 5 }, () => job('append'))
    for (const one of jobs) queue.push(one)
    assert.deepEqual(queue.next(), jobs)
    assert.ok(queue.isEmpty)
  })

  test('bounds what goes into one commit, but always takes one', () => {
    const queue = new WriterQueue()
    const large = { metas: '[]', payloads: new Uint8Array(10 * 1024 * 1024) }
    for (let n = 0; n < 3; n += 1) queue.push({ seq: n, name: 'append', args: [large] })
    assert.deepEqual(
      [queue.next(), queue.next(), queue.next()].map((jobs) => jobs.length),
      [1, 1, 1],
    )
  })

  test('lets processing and intake take turns', () => {
    const queue = fill('claim', 'ack', 'append', 'claim')
    assert.deepEqual(drain(queue), ['claim', 'append', 'ack', 'claim'])
  })

  test('serves tenants in turn, and the jobs of one tenant in their order', () => {
    const served = (holderOf: (n: number) => string): number[] => {
      const queue = new WriterQueue()
      // Of ten jobs the last is another tenant's.
      for (let n = 0; n < 10; n += 1) queue.push({ seq: n, name: 'ack', args: [], holder: holderOf(n) })
      return Array.from({ length: 10 }, () => queue.next()[0]!.seq)
    }
    assert.deepEqual(
      served((n) => (n === 9 ? 'other' : 'busy')),
      [0, 9, 1, 2, 3, 4, 5, 6, 7, 8],
    )
    const control = served(() => 'busy')
    assert.equal(control.indexOf(9), 9, 'control: of one tenant it comes last')
  })

  test('lets nobody who signs in get ahead of messages', () => {
    const queue = fill('useSignInLink', 'addAudit', 'append', 'addAudit', 'openSession')
    assert.deepEqual(drain(queue), ['useSignInLink', 'append', 'addAudit', 'addAudit', 'openSession'])
  })

  test('lets background jobs wait for intake, but not for ever', () => {
    const queue = fill('addRefusals')
    for (let turn = 1; turn < 50; turn += 1) {
      queue.push(job('append'))
      assert.equal(queue.next()[0]?.name, 'append', `turn ${turn}`)
    }
    queue.push(job('append'))
    assert.equal(queue.next()[0]?.name, 'addRefusals')
  })

  describe('after a slow commit', () => {
    test('waits for as many appends as it answered, for a quarter of its time at most', () => {
      const queue = fill('append')
      queue.committed(3, 200, 1000)
      assert.equal(queue.pause(1000), 50)
      assert.equal(queue.pause(1040), 10)
      assert.equal(queue.pause(1050), 0)
      queue.push(job('append'))
      assert.equal(queue.pause(1000), 50)
      queue.push(job('append'))
      assert.equal(queue.pause(1000), 0)
    })

    test('after a stall of the disk it does not wait for long', () => {
      const queue = fill('append')
      queue.committed(3, 20_000, 1000)
      assert.equal(queue.pause(1000), 50)
    })

    test('keeps nobody else waiting, and does not wait for nothing', () => {
      for (const other of ['probe', 'claim'] as const) {
        const queue = fill('append', other)
        queue.committed(3, 200, 1000)
        assert.equal(queue.pause(1000), 0, other)
      }
      const idle = new WriterQueue()
      idle.committed(3, 200, 1000)
      assert.equal(idle.pause(1000), 0)
    })

    test('a quick one is followed at once', () => {
      const queue = fill('append')
      queue.committed(3, 3.9, 1000)
      assert.equal(queue.pause(1000), 0)
    })
  })
})

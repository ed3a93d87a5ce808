// A full disk: nobody is told "stored" who was not, reads go on, and when there is room again so does everything.

import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { AppendItem } from '../../../src/store/contract/append.ts'
import { StoreFailure, StoreRefused } from '../../../src/store/contract/failure.ts'
import type { Store } from '../../../src/store/contract/store.ts'
import { openStore } from '../../../src/store/open.ts'
import { idOf, item, newToken } from '../rows.ts'
import { failure, indexAll } from '../suite.ts'
import { mountSmallDisk } from '../../support/disk.ts'

/**
 * Room that is freed when the ballast goes: for the write-ahead logs, in which deleted content is overwritten, and for the pages that
 * a checkpoint copies from them.
 */
const ROOM_BYTES = 24_000_000

/** Null, and the test reported as skipped, where no file system can be mounted. */
function smallDisk(t: TestContext, megabytes: number): string | null {
  const folder = mountSmallDisk(t, megabytes * 1024 * 1024)
  if (folder === null) t.skip('needs root, to mount a small file system')
  return folder
}

/** Something on the disk that can be removed to make room. */
function ballast(folder: string): { remove(): void } {
  const path = join(folder, 'ballast')
  writeFileSync(path, Buffer.alloc(ROOM_BYTES))
  return { remove: () => rmSync(path) }
}

interface Filled {
  readonly acknowledged: Map<number, AppendItem>
  /** The call that found no room. */
  readonly refused: AppendItem[]
}

async function fillUp(store: Store): Promise<Filled> {
  const acknowledged = new Map<number, AppendItem>()
  for (let n = 0; ; n++) {
    const items = Array.from({ length: 5 }, (_, k) => item({ sourceRef: `${n}-${k}`, body: `${n}-${k} `.repeat(500) }))
    try {
      for (const [k, outcome] of (await store.journal.append(items)).entries())
        acknowledged.set(idOf(outcome), items[k]!)
    } catch (error) {
      failure('unavailable')(error)
      return { acknowledged, refused: items }
    }
    assert.ok(n < 10_000, 'the disk never gets full')
  }
}

async function holds(store: Store, acknowledged: Filled['acknowledged']): Promise<void> {
  for (const [id, { payload }] of acknowledged) {
    const kept = await store.events.payload(id)
    assert.ok(kept && Buffer.from(kept).equals(payload), `event ${id} is there, unaltered`)
  }
}

for (const role of ['server', 'tool'] as const) {
  test(`a ${role} on a full disk says unavailable, reads on, and resumes unaided`, async (t) => {
    const disk = smallDisk(t, 28)
    if (!disk) return
    const room = ballast(disk)
    const url = `sqlite:${join(disk, 'intray.db')}`
    const store = await openStore(url, { role })
    t.after(() => store.close())
    const fatal: Error[] = []
    store.onFatal((error) => fatal.push(error))
    const { acknowledged, refused } = await fillUp(store)
    assert.ok(acknowledged.size > 0)

    for (let n = 0; n < 5; n++) await assert.rejects(store.journal.append(refused), failure('unavailable'))
    await holds(store, acknowledged)
    assert.equal(await store.tokens.generation(), 0)
    // What needs little room may still find it; it must not break, and the rest goes on.
    for (const write of [
      store.probe(),
      store.tokens.create(newToken()),
      store.index.step({ maxRows: 500, maxBytes: 1 << 22 }),
    ]) {
      await write.catch((error: unknown) => failure('unavailable')(error))
    }

    room.remove()
    const outcomes = await store.journal.append(refused)
    for (const [n, outcome] of outcomes.entries()) {
      assert.equal(outcome.outcome, 'stored', 'the refused call left nothing behind')
      acknowledged.set(idOf(outcome), refused[n]!)
    }
    await store.probe()
    await indexAll(store)
    await holds(store, acknowledged)
    assert.deepEqual(fatal, [])
    await store.close()

    const reopened = await openStore(url, { role: 'server' })
    t.after(() => reopened.close())
    await holds(reopened, acknowledged)
    assert.equal(await reopened.events.watermark(), acknowledged.size)
  })
}

test('a server is closed in good order on a full disk, and nothing acknowledged is lost', async (t) => {
  const disk = smallDisk(t, 28)
  if (!disk) return
  const room = ballast(disk)
  const url = `sqlite:${join(disk, 'intray.db')}`
  const store = await openStore(url, { role: 'server' })
  const fatal: Error[] = []
  store.onFatal((error) => fatal.push(error))
  const { acknowledged } = await fillUp(store)
  await store.close()
  assert.deepEqual(fatal, [], 'a full disk is nothing fatal')
  room.remove()
  const reopened = await openStore(url, { role: 'server' })
  t.after(() => reopened.close())
  await holds(reopened, acknowledged)
})

test('a start on a full disk is refused with a sentence that says so, and works once there is room', async (t) => {
  const disk = smallDisk(t, 1)
  if (!disk) return
  const path = join(disk, 'intray.db')
  const full = join(disk, 'full')
  try {
    for (let n = 0; ; n++) writeFileSync(full, Buffer.alloc(4096), { flag: n === 0 ? 'w' : 'a' })
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC')
  }
  for (const role of ['server', 'tool'] as const) {
    await assert.rejects(openStore(`sqlite:${path}`, { role }), (error) => {
      assert.ok(error instanceof StoreRefused, `not a StoreRefused: ${error}`)
      assert.match(error.message, /disk is full/)
      assert.ok(error.message.includes(path))
      return true
    })
  }
  rmSync(full)
  const store = await openStore(`sqlite:${path}`, { role: 'server' })
  await store.journal.append([item()])
  await store.close()
})

test('a failure on a full disk names its cause', async (t) => {
  const disk = smallDisk(t, 2)
  if (!disk) return
  const store = await openStore(`sqlite:${join(disk, 'intray.db')}`, { role: 'server' })
  t.after(() => store.close())
  const { refused } = await fillUp(store)
  await assert.rejects(
    store.journal.append(refused),
    (error) => error instanceof StoreFailure && /disk is full/.test(error.message),
  )
})

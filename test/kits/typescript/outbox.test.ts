// The outbox contract of the TypeScript client, on both of its files.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import * as sqlite from 'node:sqlite'
import { describe, test } from 'node:test'
import { openOutbox } from '../../../kits/typescript/src/open-outbox.ts'
import { FileOutbox } from '../../../kits/typescript/src/outbox-file.ts'
import { SqliteOutbox, STATEMENTS } from '../../../kits/typescript/src/outbox-sqlite.ts'
import { CLAIM_MS, type NewMessage, type Outbox, type OutboxRow } from '../../../kits/typescript/src/outbox.ts'
import { tempFolder } from '../../support/temp.ts'

const KINDS: Record<string, (path: string) => Promise<Outbox>> = {
  'in SQLite': async (path) => new SqliteOutbox(sqlite, path),
  'in an append-only file': (path) => FileOutbox.open(path),
}
const NOW = 1_800_000_000_000

function message(ref: string, channel: string | null = null): NewMessage {
  const body = Buffer.from(JSON.stringify({ source_ref: ref, text: 'Ünïcode \u2028 "\\ \n' }))
  return { source_ref: ref, channel_ref: channel, traceparent: null, body }
}

const newPath = (): string => join(tempFolder('outbox'), 'outbox')
const refs = (rows: readonly OutboxRow[]): string[] => rows.map(({ source_ref }) => source_ref)

/** Claims and settles until nothing is due; returns the order. */
async function drain(outbox: Outbox, now: number): Promise<string[]> {
  const order: string[] = []
  for (;;) {
    const rows = await outbox.claim(3, now)
    if (rows.length === 0) return order
    for (const row of rows) {
      order.push(row.source_ref)
      await outbox.sent(row, now)
    }
  }
}

for (const [kind, open] of Object.entries(KINDS)) {
  describe(`an outbox ${kind}`, () => {
    test('hands out the bytes as they were given, once, until the claim ends', async () => {
      const outbox = await open(newPath())
      const given = { ...message('a'), traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' }
      await outbox.add(given, NOW)
      const [row, ...others] = await outbox.claim(10, NOW)
      assert.deepEqual(others, [])
      assert.deepEqual(Buffer.from(row!.body), given.body)
      assert.deepEqual([row!.source_ref, row!.traceparent, row!.attempts], ['a', given.traceparent, 1])
      assert.deepEqual(await outbox.claim(10, NOW + CLAIM_MS - 1), [])
      const [again] = await outbox.claim(10, NOW + CLAIM_MS)
      assert.deepEqual([again!.source_ref, again!.attempts], ['a', 2])
      // The first claimant is late: its failure changes nothing, its success does.
      await outbox.refused(row!, 'late', NOW + CLAIM_MS)
      await outbox.retry(row!, NOW, 'late', NOW + CLAIM_MS)
      assert.equal(outbox.nextAt(), NOW + 2 * CLAIM_MS)
      assert.deepEqual({ ...outbox.counts() }, { waiting: 1, refused: 0, oldest_at: NOW })
      await outbox.sent(row!, NOW + CLAIM_MS)
      assert.deepEqual({ ...outbox.counts() }, { waiting: 0, refused: 0, oldest_at: null })
      assert.equal(outbox.nextAt(), null)
      await outbox.close()
    })

    test('rows whose time is of a clock that was set back are made due', async () => {
      const outbox = await open(newPath())
      const hour = 3_600_000
      for (const ref of ['claimed', 'failed', 'soon']) await outbox.add(message(ref, ref), NOW)
      await outbox.add(message('behind', 'failed'), NOW)
      const [, failed, soon] = await outbox.claim(10, NOW)
      await outbox.retry(failed!, NOW + 5000, '503', NOW)
      const then = NOW - 24 * hour
      await outbox.retry(soon!, then + hour, '503', NOW)
      assert.deepEqual(await outbox.claim(10, then), [])
      await outbox.correctTimes(then + hour, then)
      assert.deepEqual(refs(await outbox.claim(10, then)), ['claimed', 'failed'])
      assert.equal(outbox.nextAt(), then + CLAIM_MS)
      assert.deepEqual(refs(await outbox.claim(10, then + hour)), ['claimed', 'failed', 'soon'])
      await outbox.close()
    })

    test('a waiting row holds back its own channel and no other; a refused one holds back nothing', async () => {
      const outbox = await open(newPath())
      for (const [ref, channel] of [
        ['a1', 'a'],
        ['a2', 'a'],
        ['b1', 'b'],
        ['x', null],
        ['a3', 'a'],
        ['y', null],
      ] as const)
        await outbox.add(message(ref, channel), NOW)
      const first = await outbox.claim(10, NOW)
      assert.deepEqual(refs(first), ['a1', 'b1', 'x', 'y'])
      await outbox.retry(first[0]!, NOW + 5000, '503', NOW)
      for (const row of first.slice(1)) await outbox.sent(row, NOW)
      assert.deepEqual(await outbox.claim(10, NOW + 4999), [], 'a2 and a3 wait for a1')
      assert.equal(outbox.nextAt(), NOW + 5000)
      const [a1] = await outbox.claim(10, NOW + 5000)
      await outbox.refused(a1!, '422', NOW + 5000)
      assert.deepEqual(await drain(outbox, NOW + 5000), ['a2', 'a3'])
      assert.deepEqual(refs(await outbox.listRefused(0, 10)), ['a1'])
      await outbox.close()
    })

    test('a refused row that is sent again comes before what waits in its channel', async () => {
      const outbox = await open(newPath())
      for (const ref of ['a1', 'a2', 'a3']) await outbox.add(message(ref, 'a'), NOW)
      const [a1] = await outbox.claim(1, NOW)
      await outbox.refused(a1!, '422', NOW)
      const [a2] = await outbox.claim(1, NOW)
      assert.equal(await outbox.resend(a1!.id, NOW), true)
      assert.equal(await outbox.resend(a1!.id, NOW), false)
      assert.deepEqual(await outbox.claim(5, NOW), [], 'a2 is under way')
      await outbox.retry(a2!, NOW + 9000, '503', NOW)
      assert.deepEqual(await drain(outbox, NOW), ['a1', 'a2', 'a3'])
      await outbox.close()
    })

    test('everything is there again after a restart, in order, with its state', async () => {
      const path = newPath()
      let outbox = await open(path)
      for (const ref of ['a1', 'a2', 'a3']) await outbox.add(message(ref, 'a'), NOW)
      await outbox.add(message('x'), NOW)
      const [a1, x] = await outbox.claim(2, NOW)
      await outbox.refused(a1!, '422: no', NOW)
      await outbox.retry(x!, NOW + 7000, '503', NOW)
      await outbox.close()
      outbox = await open(path)
      assert.deepEqual({ ...outbox.counts() }, { waiting: 3, refused: 1, oldest_at: NOW })
      assert.deepEqual(
        (await outbox.listRefused(0, 10)).map((row) => [row.source_ref, row.last_error]),
        [['a1', '422: no']],
      )
      assert.deepEqual(await drain(outbox, NOW + 6999), ['a2', 'a3'])
      const [again] = await outbox.claim(2, NOW + 7000)
      assert.deepEqual([again!.source_ref, again!.attempts, again!.last_error], ['x', 2, '503'])
      await outbox.close()
    })

    test('the same message twice is two rows', async () => {
      const outbox = await open(newPath())
      for (let n = 0; n < 2; n++) await outbox.add(message('same'), NOW)
      assert.deepEqual(await drain(outbox, NOW), ['same', 'same'])
      await outbox.close()
    })
  })
}

test('two processes that share a SQLite outbox never hold one row together', async () => {
  const path = newPath()
  const [one, other] = [new SqliteOutbox(sqlite, path), new SqliteOutbox(sqlite, path)]
  for (let n = 0; n < 60; n++) await (n % 2 ? one : other).add(message(`m${n}`, n % 3 ? null : `c${n % 4}`), NOW)
  const seen: string[] = []
  for (let claimed = 1; claimed > 0; ) {
    const rows = (await Promise.all([one.claim(4, NOW), other.claim(4, NOW)])).flat()
    claimed = rows.length
    seen.push(...refs(rows))
    await Promise.all(rows.map((row, n) => (n % 2 ? one : other).sent(row, NOW)))
  }
  assert.equal(seen.length, 60)
  assert.equal(new Set(seen).size, 60)
  await Promise.all([one.close(), other.close()])
})

test('sent rows are pruned after their time, waiting and refused ones never', async () => {
  const path = newPath()
  const outbox = new SqliteOutbox(sqlite, path)
  for (const ref of ['sent', 'refused', 'waiting']) await outbox.add(message(ref), NOW)
  const [sent, refused] = await outbox.claim(2, NOW)
  await outbox.sent(sent!, NOW)
  await outbox.refused(refused!, '422', NOW)
  const database = new sqlite.DatabaseSync(path)
  const stored = () => database.prepare('SELECT count(*) AS count FROM outbox').get()?.count
  await outbox.prune(NOW)
  assert.equal(stored(), 3)
  await outbox.prune(NOW + 1)
  assert.equal(stored(), 2)
  assert.deepEqual({ ...outbox.counts() }, { waiting: 1, refused: 1, oldest_at: NOW })
  database.close()
  await outbox.close()
})

test('no statement reads rows that do not concern it', async () => {
  const path = newPath()
  await new SqliteOutbox(sqlite, path).close()
  const database = new sqlite.DatabaseSync(path)
  const plan = (sql: string) =>
    database
      .prepare(`EXPLAIN QUERY PLAN ${sql}`)
      .all()
      .map(({ detail }) => String(detail))
  const scans = (sql: string) => plan(sql).filter((step) => /^SCAN (?!CONSTANT ROW)/.test(step))
  for (const [name, sql] of Object.entries(STATEMENTS)) assert.deepEqual(scans(sql), [], name)
  assert.equal(scans('UPDATE outbox SET attempts = 0 WHERE source_ref = ?').length, 1)
  // Of a long channel only the first row and the one with a time are looked at.
  assert.match(plan(STATEMENTS.WAKE).join(), /outbox_channel_due/)
  assert.match(plan(STATEMENTS.HOLD_BACK).join(), /outbox_channel_due/)
  database.close()
})

test('a line that a crash left half written is cut off, and what came before is kept', async () => {
  const path = newPath()
  let outbox = await FileOutbox.open(path)
  await outbox.add(message('kept'), NOW)
  await outbox.close()
  const whole = readFileSync(path)
  await (outbox = await FileOutbox.open(path)).add(message('torn'), NOW)
  await outbox.close()
  const both = readFileSync(path)
  for (let length = whole.length; length < both.length; length += 7) {
    const torn = newPath()
    writeFileSync(torn, both.subarray(0, length))
    outbox = await FileOutbox.open(torn)
    assert.deepEqual({ ...outbox.counts() }, { waiting: 1, refused: 0, oldest_at: NOW }, `cut at ${length}`)
    await outbox.add(message('after'), NOW)
    await outbox.close()
    outbox = await FileOutbox.open(torn)
    assert.deepEqual(await drain(outbox, NOW), ['kept', 'after'])
    await outbox.close()
  }
})

test('lines that cannot be read in the middle are reported, a copy is kept, and the rest is sent', async () => {
  const path = newPath()
  let outbox = await FileOutbox.open(path)
  for (const ref of ['a', 'b', 'c']) await outbox.add(message(ref), NOW)
  await outbox.close()
  const lines = readFileSync(path, 'utf8').split('\n')
  lines[1] = '\0'.repeat(lines[1]!.length)
  writeFileSync(path, lines.join('\n'))
  const damages: string[] = []
  outbox = await FileOutbox.open(path, { onDamage: (said) => damages.push(said) })
  assert.equal(damages.length, 1)
  assert.match(damages[0]!, /^1 lines of .+ cannot be read\. .+ is a copy of the file\.$/)
  assert.equal(readdirSync(dirname(path)).filter((name) => name.startsWith(`${basename(path)}.damaged-`)).length, 1)
  assert.deepEqual(await drain(outbox, NOW), ['a', 'c'])
  await outbox.close()
})

test('the file is rewritten without what was sent, and keeps what was not', async () => {
  const path = newPath()
  const outbox = await FileOutbox.open(path, { compactFromBytes: 20_000 })
  await outbox.add(message('refused'), NOW)
  const [refused] = await outbox.claim(1, NOW)
  await outbox.refused(refused!, '422', NOW)
  await outbox.add(message('later'), NOW)
  const [later] = await outbox.claim(1, NOW)
  await outbox.retry(later!, NOW + 1000, '503', NOW)
  let largest = 0
  for (let n = 0; n < 300; n++) {
    await outbox.add(message(`m${n}`), NOW)
    assert.deepEqual(await drain(outbox, NOW), [`m${n}`])
    largest = Math.max(largest, statSync(path).size)
  }
  assert.ok(largest < 45_000, `${largest} bytes at most`)
  await outbox.close()
  const again = await FileOutbox.open(path)
  assert.deepEqual({ ...again.counts() }, { waiting: 1, refused: 1, oldest_at: NOW })
  assert.equal(again.nextAt(), NOW + 1000)
  assert.deepEqual(refs(await again.listRefused(0, 10)), ['refused'])
  assert.deepEqual(await drain(again, NOW + 1000), ['later'])
  await again.close()
})

test('the append-only file belongs to one process; the lock of a dead one is taken over', async () => {
  const path = newPath()
  const outbox = await FileOutbox.open(path)
  await assert.rejects(FileOutbox.open(path), /belongs to another process/)
  const lock = readFileSync(`${path}.lock`, 'utf8')
  await outbox.close()
  for (const dead of [
    lock.replace(/"pid":\d+/, '"pid":4194303'),
    lock.replace(/"started":"[^"]+"/, '"started":"an earlier boot:1"'),
  ]) {
    if (dead === lock) continue
    writeFileSync(`${path}.lock`, dead)
    await (await FileOutbox.open(path)).close()
  }
  // Another machine's is alive until it has not been touched for a while.
  writeFileSync(`${path}.lock`, lock.replace(/"host":"[^"]*"/, '"host":"elsewhere"'))
  await assert.rejects(FileOutbox.open(path), /belongs to another process/)
})

test('what is there decides the kind: an append-only file stays one where SQLite is available', async () => {
  const path = newPath()
  const file = await FileOutbox.open(path)
  await file.add(message('old'), NOW)
  await file.close()
  const opened = await openOutbox(path, assert.fail)
  assert.ok(opened instanceof FileOutbox)
  assert.deepEqual(await drain(opened, NOW), ['old'])
  await opened.close()
  const fresh = await openOutbox(newPath(), assert.fail)
  assert.ok(fresh instanceof SqliteOutbox)
  await fresh.close()
})

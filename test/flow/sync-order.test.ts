// What "on disk" rests on, seen from below: the system calls of a running server in their order.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { readSyncOrder, type SyncOrder } from '../../prove/sync-order.ts'
import { hasStrace, SENDS, Strace, SYNCS, WRITES } from '../../prove/strace.ts'
import { createToken, withStore } from '../support/journal.ts'
import { post } from '../support/load.ts'
import { startServer } from '../support/process.ts'
import { tempFolder } from '../support/temp.ts'

const skip = hasStrace() ? false : 'not run: strace is not installed'
const WEAKEN = fileURLToPath(new URL('../../prove/weaken.ts', import.meta.url))
const MESSAGES = 120
const AT_ONCE = 8
/** A page of the WAL and more. */
const WHOLE_BYTES = 8192

interface Traced {
  readonly strace: string
  /** By the id in the answer. */
  readonly refs: ReadonlyMap<number, string>
}

/** Sends messages one by one and several at once to a server that strace watches. */
async function trace(t: TestContext, env: Record<string, string> = {}): Promise<Traced> {
  const folder = tempFolder('sync-order')
  const databaseUrl = `sqlite:${join(folder, 'intray.db')}`
  const token = await withStore(databaseUrl, (store) => createToken(store))
  const server = await startServer(t, { INTRAY_DATABASE_URL: databaseUrl, ...env })
  const strace = await Strace.attach({
    pid: server.child.pid!,
    output: join(folder, 'strace'),
    calls: [...SYNCS, ...WRITES, ...SENDS],
    wholeBytes: WHOLE_BYTES,
  })
  const refs = new Map<number, string>()
  const sendOne = async (number: number) => {
    const ref = `order-${number}-of-many`
    const answer = await post(
      server.port,
      token,
      JSON.stringify({ source_ref: ref, message: { text: 'x'.repeat(200) } }),
    )
    assert.equal(answer.status, 200, answer.text)
    refs.set(Number(answer.json?.id), ref)
  }
  for (let number = 0; number < MESSAGES; ) {
    const together = number % (2 * AT_ONCE) === 0 ? 1 : AT_ONCE - 1
    await Promise.all(Array.from({ length: together }, () => sendOne(number++)))
  }
  await strace.end()
  return { strace: strace.read(), refs }
}

function inWords({ answers, syncs, early }: SyncOrder): string {
  return `${answers} answers of 2xx and ${syncs} syncs of the WAL seen; ${early.length} answers left before their sync`
}

test('no byte of a 2xx leaves before the sync that covers its message has returned', { skip }, async (t) => {
  const { strace, refs } = await trace(t)
  const order = readSyncOrder(strace, refs)
  t.diagnostic(inWords(order))
  assert.ok(refs.size >= MESSAGES, 'every message has an id of its own')
  assert.equal(order.answers, refs.size, 'every answer was seen to leave')
  assert.ok(order.syncs > 0, 'no sync was seen')
  assert.deepEqual(order.early, [])

  // The same calls with one sync moved behind the answer that waited for it.
  const lines = strace.split('\n')
  const answer = lines.findIndex((line) => / (write|writev)\(\d+<.*\\x48\\x54\\x54\\x50/.test(line))
  const sync = lines.findLastIndex((line, at) => at < answer && / fsync\(|<\.\.\. fsync resumed>/.test(line))
  assert.ok(sync >= 0 && answer > sync)
  const moved = [
    ...lines.slice(0, sync),
    ...lines.slice(sync + 1, answer + 1),
    lines[sync]!,
    ...lines.slice(answer + 1),
  ]
  assert.equal(readSyncOrder(moved.join('\n'), refs).early.length, 1, 'it would be seen if one answer left too early')
})

test('the same look finds every answer of a server that does not sync', { skip }, async (t) => {
  const { strace, refs } = await trace(t, { NODE_OPTIONS: `--import ${WEAKEN}`, PROVE_SYNCHRONOUS: 'OFF' })
  const order = readSyncOrder(strace, refs)
  t.diagnostic(inWords(order))
  assert.equal(order.answers, refs.size, 'every answer was seen to leave')
  assert.equal(order.early.length, order.answers)
})

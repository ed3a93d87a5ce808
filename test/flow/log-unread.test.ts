// A log that nobody reads: whole lines are dropped, and those that wait take a bounded amount of memory.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { closeSync, constants, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { LineSink } from '../../src/runtime/line-sink.ts'
import { tempFolder } from '../support/temp.ts'

test('what nobody reads is dropped, by whole lines, and what was kept comes out when somebody reads', async () => {
  const path = join(tempFolder('lines'), 'fifo')
  execFileSync('mkfifo', [path])
  const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
  const sink = new LineSink(fd)
  const line = (n: number) => `${String(n).padStart(8)} ${'x'.repeat(1000)}\n`
  const count = 40_000
  for (let n = 0; n < count; n++) sink.write(line(n))
  let isOver = false
  const flushed = sink.flush().then(() => {
    isOver = true
  })
  const chunk = Buffer.alloc(65_536)
  let text = ''
  const drain = () => {
    try {
      for (let size = readSync(fd, chunk); size > 0; size = readSync(fd, chunk))
        text += chunk.toString('latin1', 0, size)
    } catch (error) {
      assert.equal((error as NodeJS.ErrnoException).code, 'EAGAIN')
    }
  }
  while (!isOver) {
    drain()
    await new Promise((resolve) => setImmediate(resolve))
  }
  await flushed
  drain()
  closeSync(fd)
  const kept = text.split('\n').slice(0, -1)
  for (const [n, found] of kept.entries()) assert.equal(`${found}\n`, line(n))
  const mebibytes = (kept.length * line(0).length) / 2 ** 20
  assert.ok(mebibytes > 15 && mebibytes < 17, `${mebibytes} MiB`)
})

// Log lines come out in order and whole. A log that nobody reads is in test/flow/log-unread.test.ts.

import assert from 'node:assert/strict'
import { closeSync, copyFileSync, openSync, readFileSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { LineSink } from '../../../src/runtime/line-sink.ts'
import { tempFolder } from '../../support/temp.ts'

/** Of every length, of one, two, three and four bytes a letter. */
function lineOf(n: number): string {
  return `${n} ${['a', 'é', '€', '😀'][n % 4]} ${'é'.repeat((n * 37) % 400)}\n`
}

test('lines come out in order and whole, whatever their length, while more come in', async () => {
  const path = join(tempFolder('lines'), 'log')
  const fd = openSync(path, 'w')
  const sink = new LineSink(fd)
  const lines = Array.from({ length: 5000 }, (_, n) => (n === 2500 ? `${'€'.repeat(200_000)}\n` : lineOf(n)))
  for (const [n, line] of lines.entries()) {
    sink.write(line)
    // So that pieces are written and filled again in between.
    if (n % 500 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  await sink.flush()
  closeSync(fd)
  assert.ok(readFileSync(path, 'utf8') === lines.join(''))
})

test('a line that is larger than what was written before it comes out whole', async () => {
  const path = join(tempFolder('lines'), 'log')
  const fd = openSync(path, 'w')
  const sink = new LineSink(fd)
  const lines = ['first\n', `${'x'.repeat(200_000)}\n`, 'last\n']
  for (const line of lines) {
    sink.write(line)
    await sink.flush()
  }
  // A whole piece is being written when this is asked for.
  const piece = `${'y'.repeat(66_000)}\n`
  sink.write(piece)
  await sink.flush()
  assert.ok(readFileSync(path, 'utf8') === lines.join('') + piece)
  closeSync(fd)
})

test('a reader that is gone costs its lines and nothing else', async () => {
  const fd = openSync(join(tempFolder('lines'), 'log'), 'w')
  const sink = new LineSink(fd)
  closeSync(fd)
  sink.write('lost\n')
  await sink.flush()
  sink.write('lost too\n')
  await sink.flush()
})

test('a file that is copied and truncated by a program that rotates logs goes on with whole lines, if it is appended to', async () => {
  const path = join(tempFolder('lines'), 'log')
  const rotated = async (flags: string) => {
    const fd = openSync(path, flags)
    const sink = new LineSink(fd)
    sink.write('before\n')
    await sink.flush()
    copyFileSync(path, `${path}.1`)
    truncateSync(path)
    sink.write('after\n')
    await sink.flush()
    closeSync(fd)
    return [readFileSync(`${path}.1`, 'utf8'), readFileSync(path, 'utf8')]
  }
  assert.deepEqual(await rotated('a'), ['before\n', 'after\n'])
  truncateSync(path)
  assert.deepEqual(await rotated('w'), ['before\n', `${'\0'.repeat(7)}after\n`], 'control: without it there is a hole')
})

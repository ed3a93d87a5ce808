import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Line, splitLines, wholeText } from '../../../src/cli/line-reader.ts'

async function* inChunks(text: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < text.length; at += size) yield text.subarray(at, at + size)
}

async function collect(lines: AsyncIterable<Line>): Promise<[number, string | null][]> {
  const found: [number, string | null][] = []
  for await (const { number, bytes } of lines) found.push([number, bytes?.toString('latin1') ?? null])
  return found
}

test('lines come out as they are, wherever the chunks are cut, with the numbers they have in the file', async () => {
  const line = fc.string({ unit: fc.constantFrom('a', ' ', '\r', '"', '\t', 'é') })
  await fc.assert(
    fc.asyncProperty(fc.array(line), fc.integer({ min: 1, max: 9 }), async (lines, size) => {
      const expected = lines
        .map((text, n): [number, string] => [n + 1, n < lines.length - 1 ? text.replace(/\r$/, '') : text])
        .filter(([, text]) => /[^ \t\r]/.test(text))
        .map(([n, text]): [number, string] => [n, Buffer.from(text).toString('latin1')])
      assert.deepEqual(await collect(splitLines(inChunks(Buffer.from(lines.join('\n')), size), 1000)), expected)
    }),
  )
})

test('a line that is too long is reported without its bytes, and the next one is complete', async () => {
  const text = Buffer.from(`${'x'.repeat(11)}\n${'y'.repeat(10)}\n${'z'.repeat(25)}`)
  for (const size of [1, 4, 100]) {
    assert.deepEqual(await collect(splitLines(inChunks(text, size), 10)), [
      [1, null],
      [2, 'yyyyyyyyyy'],
      [3, null],
    ])
  }
})

test('a whole text is one, line breaks and all', async () => {
  const text = Buffer.from('\n{\r\n}\n\n')
  assert.deepEqual(await collect(wholeText(inChunks(text, 3), 100)), [[1, '\n{\r\n}\n\n']])
  assert.deepEqual(await collect(wholeText(inChunks(text, 3), 5)), [[1, null]])
})

// What cannot be seen in a text is named.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { textParts, visibleText } from '../../../console/src/text/hidden-characters.ts'

test('marks that turn the direction of a text are named and do not remain in it', () => {
  assert.equal(visibleText('invoice\u202efdp.exe'), 'invoice⟦U+202E⟧fdp.exe')
  assert.deepEqual(textParts('a\u2066b'), [
    { text: 'a', hidden: null },
    { text: 'U+2066', hidden: 'left-to-right isolate' },
    { text: 'b', hidden: null },
  ])
})

test('every character of the classes that hide or turn is named', () => {
  const spans = [
    [0x00, 0x08],
    [0x0b, 0x1f],
    [0x7f, 0x9f],
    [0x200b, 0x200f],
    [0x2028, 0x202e],
    [0x2060, 0x206f],
    [0xfff9, 0xfffb],
    [0xe0000, 0xe007f],
    [0xd800, 0xdfff],
  ] as const
  const single = [0xad, 0x34f, 0x61c, 0x115f, 0x1160, 0x180e, 0x3164, 0xfeff, 0xffa0]
  const all = [...spans.flatMap(([from, to]) => Array.from({ length: to - from + 1 }, (_, n) => from + n)), ...single]
  for (const code of all) {
    const name = `U+${code.toString(16).toUpperCase().padStart(4, '0')}`
    assert.equal(visibleText(`x${String.fromCodePoint(code)}y`), `x⟦${name}⟧y`)
  }
})

test('ordinary text of any script, line breaks, tabs and joined pictures stay as they are', () => {
  for (const text of ['Zoë', 'שלום עולם', 'مرحبا', '日本語', 'a\n\tb', '👩‍👩‍👧‍👦', '👍🏽', '🏳️‍🌈', '']) {
    assert.equal(visibleText(text), text)
  }
})

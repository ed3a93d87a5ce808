// How the console reads JSON: as the text that it is.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { flatFields } from '../../../console/src/json/fields.ts'
import { diffLines } from '../../../console/src/json/line-diff.ts'
import { linesOf, PIECE_LENGTH } from '../../../console/src/json/lines.ts'
import { isFailure, scanJson } from '../../../console/src/json/scan.ts'

test('whatever JSON.parse takes is scanned, and laid out it says the same', () => {
  fc.assert(
    fc.property(fc.json(), fc.nat(3), (text, space) => {
      const given = JSON.stringify(JSON.parse(text), null, space)
      assert.ok(!isFailure(scanJson(given)))
      const laidOut = linesOf(given)
        .map((line) => line.text)
        .join('')
      assert.deepEqual(JSON.parse(laidOut), JSON.parse(given))
    }),
  )
})

test('what JSON.parse refuses is refused, and never throws', () => {
  const broken = fc.tuple(fc.json(), fc.nat(), fc.string({ maxLength: 3 })).map(([text, at, put]) => {
    const place = at % (text.length + 1)
    return text.slice(0, place) + put + text.slice(place + 1)
  })
  let refused = 0
  fc.assert(
    fc.property(broken, (text) => {
      let isJson = true
      try {
        JSON.parse(text)
      } catch {
        isJson = false
      }
      if (!isJson) refused++
      // A byte order mark is passed over here and refused there.
      if (!text.startsWith('\ufeff')) assert.equal(!isFailure(scanJson(text)), isJson, JSON.stringify(text))
    }),
    { numRuns: 2000 },
  )
  assert.ok(refused > 100, `${refused} texts were broken`)
})

test('numbers keep all their digits, and escapes and double keys stay as sent', () => {
  const text = '{"n":12345678901234567890.1234567890e+400,"a":"\\u0041","a":-0}'
  const lines = linesOf(text).map((line) => line.text)
  assert.deepEqual(lines, ['{', '"n": 12345678901234567890.1234567890e+400,', '"a": "\\u0041",', '"a": -0', '}'])
  assert.deepEqual(flatFields(text), [
    { path: '/n', type: 'number', value: '12345678901234567890.1234567890e+400' },
    { path: '/a', type: 'text', value: 'A' },
    { path: '/a', type: 'number', value: '-0' },
  ])
})

test('fields are flat, with JSON Pointers; empty objects and lists are fields', () => {
  assert.deepEqual(flatFields('{"a/b":{"~":[1,{"c":null}]},"e":{},"l":[],"t":true}'), [
    { path: '/a~1b/~0/0', type: 'number', value: '1' },
    { path: '/a~1b/~0/1/c', type: 'null', value: 'null' },
    { path: '/e', type: 'object', value: '{}' },
    { path: '/l', type: 'list', value: '[]' },
    { path: '/t', type: 'boolean', value: 'true' },
  ])
  assert.equal(flatFields('{"a":'), null)
})

test('the place where JSON breaks off is told by line and column', () => {
  const failure = scanJson('{\n  "a": 1,\n  b: 2\n}')
  assert.ok(isFailure(failure))
  assert.deepEqual([failure.line, failure.column], [3, 3])
  assert.match(failure.message, /field name in double quotes/)
})

test('a megabyte in one line is given in pieces, and a million brackets neither recurse nor indent without end', () => {
  const long = linesOf(`{"text":"${'é'.repeat(1_000_000)}"}`)
  assert.ok(long.every((line) => line.text.length <= PIECE_LENGTH))
  assert.equal(long.map((line) => line.text).join('').length, 1_000_000 + '{"text": ""}'.length)
  const deep = linesOf('['.repeat(500_000) + ']'.repeat(500_000))
  assert.ok(deep.length > 500_000)
  assert.ok(Math.max(...deep.slice(0, 1000).map((line) => line.depth)) <= 24)
})

test('pieces are never cut between the halves of a character', () => {
  for (const line of linesOf(JSON.stringify({ text: '😀'.repeat(2000) }))) assert.ok(line.text.isWellFormed())
})

test('a difference names what was removed and added, and nothing else', () => {
  const before = linesOf('{"a":1,"b":2,"c":3}')
  const after = linesOf('{"a":1,"b":5,"c":3,"d":4}')
  const marked = diffLines(before, after)
    .filter(({ mark }) => mark !== 'same')
    .map(({ mark, text }) => `${mark} ${text}`)
  assert.deepEqual(marked, ['removed "b": 2,', 'added "b": 5,', 'added "d": 4'])
})

test('a difference gives both texts back, whatever they are', () => {
  const lines = fc.array(
    fc.record({ depth: fc.nat(2), text: fc.constantFrom('a', 'b', 'c', 'd') }, { noNullPrototype: true }),
    { maxLength: 12 },
  )
  fc.assert(
    fc.property(lines, lines, (before, after) => {
      const difference = diffLines(before, after)
      const side = (left: string) =>
        difference.filter(({ mark }) => mark !== left).map(({ depth, text }) => ({ depth, text }))
      assert.deepEqual(side('added'), before)
      assert.deepEqual(side('removed'), after)
    }),
  )
})

test('texts that have too little in common are not compared for ever', () => {
  const many = (letter: string) => Array.from({ length: 50_000 }, (_, n) => ({ depth: 0, text: `${letter}${n}` }))
  assert.equal(diffLines(many('a'), many('b')).length, 100_000)
})

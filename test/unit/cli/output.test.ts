import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cut, table } from '../../../src/cli/output.ts'

test('a table is cut to the width it is given, and nothing in it is cut without one', () => {
  const rows = [
    ['1', 'a long text that goes on'],
    ['22', 'short'],
  ]
  assert.equal(table(['ID', 'TEXT'], rows, 12), 'ID  TEXT\n1   a long …\n22  short\n')
  assert.equal(table(['ID', 'TEXT'], rows), 'ID  TEXT\n1   a long text that goes on\n22  short\n')
})

test('a cut never halves a character, and knows those that take two places', () => {
  assert.equal(cut('ab🙂cd', 4), 'ab…')
  assert.equal(cut('ab🙂cd', 5), 'ab🙂…')
  assert.equal(cut('東京都', 6), '東京都')
  assert.equal(cut('東京都', 5), '東京…')
  assert.equal(cut('abc', 3), 'abc')
  assert.equal(cut('Zoë', 3), 'Zoë')
})

test('columns stand below each other whatever the script', () => {
  const rows = [
    ['東京', 'x'],
    ['Zoë', 'y'],
  ]
  assert.equal(table(['NAME', 'TEXT'], rows), 'NAME  TEXT\n東京  x\nZoë   y\n')
})

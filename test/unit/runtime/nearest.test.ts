import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nearest } from '../../../src/runtime/nearest.ts'

const KNOWN = ['create', 'list', 'show', 'disable', 'enable', 'rotate']

test('the nearest name takes the fewest edits', () => {
  assert.equal(nearest('crate', KNOWN), 'create')
  assert.equal(nearest('lits', KNOWN), 'list')
  assert.equal(nearest('disabel', KNOWN), 'disable')
  assert.equal(nearest('rotate', KNOWN), 'rotate')
})

test('no name is near that takes more than two edits', () => {
  assert.equal(nearest('crte', KNOWN), 'create')
  assert.equal(nearest('cre', KNOWN), null)
  assert.equal(nearest('ls', KNOWN), 'list')
  for (const word of ['', 'x', 'destroy', 'createx12', 'x'.repeat(1_000_000)]) {
    assert.equal(nearest(word, KNOWN), null, word.slice(0, 20))
  }
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nearest } from '../../../src/runtime/nearest.ts'

test('the nearest name takes the fewest edits', () => {
  const known = ['create', 'list', 'show', 'disable', 'enable', 'rotate']
  assert.equal(nearest('crate', known), 'create')
  assert.equal(nearest('lits', known), 'list')
  assert.equal(nearest('disabel', known), 'disable')
  assert.equal(nearest('rotate', known), 'rotate')
  assert.equal(nearest('', ['only']), 'only')
})

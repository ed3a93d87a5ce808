import assert from 'node:assert/strict'
import { test } from 'node:test'
import { headerValues } from '../../../../src/http/wire/raw-headers.ts'

test('all values of a header are found, in any case and in their order', () => {
  const raw = ['Host', 'a', 'X', '1', 'HOST', 'b', 'Hosts', 'c', 'x-host', 'd']
  assert.deepEqual(headerValues(raw, 'host'), ['a', 'b'])
  assert.deepEqual(headerValues(raw, 'nothing'), [])
})

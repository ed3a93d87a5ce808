// Times in queries and commands: as ISO writes them, and days that there are.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isoMoment } from '../../../src/runtime/parameter.ts'

test('a time with its zone is read to the millisecond', () => {
  assert.equal(isoMoment('2026-11-15T12:00:00Z'), Date.UTC(2026, 10, 15, 12))
  assert.equal(isoMoment('2024-02-29T10:00+02:00'), Date.UTC(2024, 1, 29, 8))
  assert.equal(isoMoment('2026-11-15T12:00:00.25Z'), Date.UTC(2026, 10, 15, 12, 0, 0, 250))
})

test('a day that there is not, a time without a zone and other text are refused with an example', () => {
  for (const text of ['2026-02-30T00:00Z', '2026-13-01T00:00Z', '2026-11-15', '2026-11-15T12:00', '', 'now', '1e3']) {
    assert.throws(() => isoMoment(text), /^Error: must be a time such as 2026-11-15T12:00:00Z$/, text)
  }
})

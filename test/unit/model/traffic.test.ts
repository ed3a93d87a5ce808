import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HOUR_MS, MINUTE_MS, TrafficTally } from '../../../src/model/traffic.ts'

const NOON = Date.parse('2026-11-15T12:00:00.000Z')

test('however many messages there are, there is a row for each minute and one for each sender and hour', () => {
  const tally = new TrafficTally()
  for (let n = 0; n < 1000; n++) tally.add(42, 7, NOON + (n % 60_000), 'A', 'events')
  assert.deepEqual(
    tally.rows().map(({ span, at, keyId, events }) => [span, at - NOON, keyId, events]),
    [
      ['minute', 0, '', 1000],
      ['hour', 0, 'A', 1000],
    ],
  )
})

test('rows are told apart by company, account, time and sender, in whatever order messages come', () => {
  const tally = new TrafficTally()
  const places = [
    [42, 7, NOON, 'A'],
    [43, 7, NOON, 'A'],
    [42, 8, NOON, 'A'],
    [42, 7, NOON, 'B'],
    [42, 7, NOON + MINUTE_MS, 'A'],
    [42, 7, NOON + HOUR_MS, 'A'],
    [7, 42, NOON, 'A'],
  ] as const
  for (let n = 0; n < 3; n++)
    for (const [company, account, at, key] of places) tally.add(company, account, at, key, 'resends')
  const rows = tally.rows()
  const keys = rows.map(({ companyId, accountId, span, at, keyId }) => [companyId, accountId, span, at, keyId].join())
  assert.equal(new Set(keys).size, keys.length, 'an upsert meets each row once')
  assert.equal(rows.filter(({ span }) => span === 'minute').length, 6)
  assert.equal(rows.filter(({ span }) => span === 'hour').length, 6)
  for (const span of ['minute', 'hour']) {
    const sum = rows.filter((row) => row.span === span).reduce((total, { resends }) => total + resends, 0)
    assert.equal(sum, 21)
  }
  assert.ok(rows.every(({ events, revisions }) => events === 0 && revisions === 0))
})

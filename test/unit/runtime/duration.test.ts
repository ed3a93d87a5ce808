import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { formatDuration, parseDuration } from '../../../src/runtime/duration.ts'

test('durations are a number and a unit', () => {
  for (const [text, ms] of [
    ['0s', 0],
    ['250ms', 250],
    ['2s', 2000],
    ['5m', 300_000],
    ['24h', 86_400_000],
    ['365d', 31_536_000_000],
    [' 2s ', 2000],
  ] as const) {
    assert.equal(parseDuration(text), ms, text)
  }
})

test('anything else is not a duration', () => {
  for (const text of [
    '',
    '2',
    's',
    '2 s',
    '-2s',
    '+2s',
    '2.5s',
    '2S',
    '2sec',
    '1h30m',
    '1e3s',
    '9999999999s',
    '\u0662s',
  ]) {
    assert.equal(parseDuration(text), null, text)
  }
})

test('a duration is written in the largest unit that needs no fraction', () => {
  assert.equal(formatDuration(0), '0ms')
  assert.equal(formatDuration(1500), '1500ms')
  assert.equal(formatDuration(90_000), '90s')
  assert.equal(formatDuration(86_400_000), '1d')
})

test('what is written is read as the same', () => {
  fc.assert(fc.property(fc.nat({ max: 999_999_999 }), (ms) => parseDuration(formatDuration(ms)) === ms))
})

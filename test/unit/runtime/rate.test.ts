import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatRate, parseRate } from '../../../src/runtime/rate.ts'

test('a rate is so many requests in so much time, or off', () => {
  assert.deepEqual(parseRate('100/1s'), { requests: 100, windowMs: 1000 })
  assert.deepEqual(parseRate('1000000/1d'), { requests: 1_000_000, windowMs: 86_400_000 })
  assert.equal(parseRate('off'), 'off')
})

test('it is written as it is read', () => {
  for (const text of ['off', '1/1s', '6000/1m', '50/90s', '7/1500ms']) assert.equal(formatRate(parseRate(text)), text)
})

test('anything else is refused with a sentence', () => {
  for (const text of [
    '',
    '100',
    '100/',
    '/1s',
    '0/1s',
    '1000001/1s',
    '10/999ms',
    '10/2d',
    '-1/1s',
    '1.5/1s',
    'Off',
    '1/1s/1s',
  ])
    assert.throws(() => parseRate(text), /must be off or a rate such as 100\/1s/, text)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EPOCH_IDS, epochStart, resumePoint, withoutGaps } from '../../../src/model/id-gaps.ts'

const NOON = Date.parse('2026-11-15T12:00:00.000Z')

const GAPS = [
  { after: 10, before: 100 },
  { after: 103, before: 200 },
]

test('an id that was given out has no resume point', () => {
  for (const id of [0, 1, 10, 100, 101, 103, 200, 205]) assert.equal(resumePoint(GAPS, 205, id), null, String(id))
})

test('a cursor in a gap resumes at the last id before the gap', () => {
  for (const id of [11, 50, 99]) assert.equal(resumePoint(GAPS, 205, id), 10, String(id))
  for (const id of [104, 199]) assert.equal(resumePoint(GAPS, 205, id), 103, String(id))
})

test('a cursor above the last id resumes there', () => {
  assert.equal(resumePoint(GAPS, 205, 206), 205)
  assert.equal(resumePoint([], 0, 1), 0)
  assert.equal(resumePoint([], 7, 7), null)
})

test('without gaps, ids that were given out follow each other', () => {
  const given = [1, 10, 101, 102, 103, 201, 202]
  assert.deepEqual(
    given.map((id) => withoutGaps(GAPS, id)),
    [1, 10, 11, 12, 13, 14, 15],
  )
  assert.equal(withoutGaps(GAPS, 100), 10)
  assert.equal(withoutGaps(GAPS, 60), 10)
})

test('a later restore of the same backup begins above every id that an earlier one can have given out', () => {
  const first = epochStart(20, NOON)
  assert.ok(first >= 20 + EPOCH_IDS)
  assert.ok(epochStart(20, NOON + 60_000) - first >= 60 * 5000, 'more than 5,000 ids a second')
  assert.equal(epochStart(20, 0), 20 + EPOCH_IDS, 'a clock that is wrong')
  assert.ok(Number.isSafeInteger(epochStart(Date.UTC(2126), Date.UTC(2126))))
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Places } from '../../../src/runtime/places.ts'

test('there are so many places, and of these a share for each', () => {
  const places = new Places(5, 40)
  const left = [places.enter('a'), places.enter('a')]
  assert.ok(left.every((leave) => leave !== null))
  assert.equal(places.enter('a'), null, 'its share is taken')
  assert.ok(places.enter('b') && places.enter('b') && places.enter('c'))
  assert.equal(places.taken, 5)
  assert.equal(places.enter('c'), null, 'all are taken')
  left[0]!()
  left[0]!()
  assert.equal(places.taken, 4, 'a place is left once')
  assert.ok(places.enter('a'))
})

test('what is urgent may exceed the share, and not the number of places', () => {
  const places = new Places(3, 34)
  assert.ok(places.enter('a'))
  assert.equal(places.enter('a'), null)
  assert.ok(places.enter('a', true) && places.enter('a', true))
  assert.equal(places.enter('a', true), null)
})

test('everybody gets one at least, unless there is none', () => {
  assert.ok(new Places(3, 1).enter('a'))
  assert.equal(new Places(0, 100).enter('a'), null)
})

// A fresh first page before the pages that are known.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EventPage } from '../../../kits/typescript/src/schema.ts'
import { type EventPages, mergeFirstPage } from '../../../console/src/views/event-pages.ts'

const page = (ids: readonly number[], next: string | null, state = 'pending') =>
  ({ ok: true, events: ids.map((id) => ({ id, state })), next }) as unknown as EventPage
const known = (...pages: EventPage[]): EventPages => ({
  pages,
  pageParams: pages.map((_, n) => (n ? String(n) : null)),
})
const idsOf = ({ pages }: EventPages) => pages.flatMap(({ events }) => events.map(({ id }) => id))

test('what is new stands on top, and what was known is there once', () => {
  const merged = mergeFirstPage(known(page([9, 8, 7], 'b'), page([6, 5], null)), page([11, 10, 9, 8], 'a'))
  assert.deepEqual(idsOf(merged), [11, 10, 9, 8, 7, 6, 5])
  assert.deepEqual(merged.pages.at(-1)!.next, null, 'the cursor of the last page is kept')
})

test('states in the fresh page are those that count, and what it no longer has is gone', () => {
  const merged = mergeFirstPage(known(page([9, 8, 7, 6], 'b')), page([9, 7], 'a', 'done'))
  assert.deepEqual(idsOf(merged), [9, 7, 6])
  assert.equal(merged.pages[0]!.events[1]!.state, 'done')
})

test('a fresh page that does not reach what is known begins the list anew: nothing is left out between', () => {
  const merged = mergeFirstPage(known(page([3, 2, 1], null)), page([99, 98], 'c'))
  assert.deepEqual(idsOf(merged), [99, 98])
  assert.equal(merged.pages[0]!.next, 'c')
})

test('a fresh page that is the whole list is the whole list', () => {
  assert.deepEqual(idsOf(mergeFirstPage(known(page([], null)), page([1], null))), [1])
  assert.deepEqual(idsOf(mergeFirstPage(known(page([2, 1], null)), page([], null))), [])
})

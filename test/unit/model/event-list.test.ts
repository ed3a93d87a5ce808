import assert from 'node:assert/strict'
import { test } from 'node:test'
import { accessPathOf, pageOfIds, SCAN_ROWS } from '../../../src/model/event-list.ts'

test('the most selective filter gives the access path', () => {
  const all = {
    sourceRef: 's',
    words: ['w'],
    contactEmail: 'e',
    channelRef: 'c',
    kind: 'revision',
    receivedAfter: 1,
    receivedBefore: 2,
  }
  const paths: string[] = []
  const left: Partial<typeof all> = { ...all }
  for (const name of Object.keys(all) as (keyof typeof all)[]) {
    paths.push(accessPathOf(left))
    delete left[name]
  }
  assert.deepEqual(paths, ['source', 'words', 'email', 'conversation', 'revision', 'time', 'time'])
  assert.equal(accessPathOf({ kind: 'event' }), 'all')
})

/** Ids from `newest` down to 1, of which every `each`-th matches. */
function source(newest: number, each: number) {
  let asked = 0
  return {
    asked: () => asked,
    find: (below: number, limit: number) => {
      const top = Math.min(newest, below - 1)
      const ids = Array.from({ length: Math.min(limit, top) }, (_, n) => top - n)
      asked += ids.length
      return { ids, searchedDownTo: ids.length === limit ? ids.at(-1)! : null }
    },
    matching: (ids: readonly number[]) => ids.filter((id) => id % each === 0),
  }
}

const never = () => false

test('without a filter a page asks for one more than it shows', async () => {
  const { asked, ...rest } = source(100, 1)
  const page = await pageOfIds({ ...rest, below: 1000, limit: 10, chunk: null, isOver: never })
  assert.deepEqual(page, { ids: [100, 99, 98, 97, 96, 95, 94, 93, 92, 91], next: 91, partial: false })
  assert.equal(asked(), 11)
})

test('the last page has no next', async () => {
  const { asked: _, ...rest } = source(100, 1)
  assert.deepEqual(await pageOfIds({ ...rest, below: 3, limit: 10, chunk: null, isOver: never }), {
    ids: [2, 1],
    next: null,
    partial: false,
  })
})

test('with a filter a page looks on until it is full, at most so far, and goes on from where it stopped', async () => {
  const { asked, ...rest } = source(50_000, 4000)
  const first = await pageOfIds({ ...rest, below: 1_000_000, limit: 10, chunk: 1000, isOver: never })
  assert.deepEqual(first, { ids: [48_000, 44_000], next: 50_000 - SCAN_ROWS + 1, partial: true })
  assert.equal(asked(), SCAN_ROWS)
  const ids: number[] = []
  for (let below: number | null = 1_000_000; below !== null; ) {
    const page = await pageOfIds({ ...rest, below, limit: 2, chunk: 1000, isOver: never })
    ids.push(...page.ids)
    below = page.next
  }
  assert.deepEqual(
    ids,
    Array.from({ length: 12 }, (_, n) => 48_000 - 4000 * n),
  )
})

test('a search that gave up is a partial page, however little it found', async () => {
  const page = await pageOfIds({
    below: 100,
    limit: 10,
    chunk: null,
    isOver: never,
    find: () => ({ ids: [90], searchedDownTo: 80 }),
    matching: (ids) => ids,
  })
  assert.deepEqual(page, { ids: [90], next: 80, partial: true })
})

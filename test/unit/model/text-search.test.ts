import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import {
  cutWords,
  firstWords,
  foldEmail,
  MAX_WORD_LENGTH,
  MAX_WORDS,
  queryWords,
  SPAN_IDS,
  type SpanQuery,
  search,
  spanOf,
  spanQueryFor,
  wordPrefix,
} from '../../../src/model/text-search.ts'
import { anyText } from '../../support/text.ts'

const TENANT = { accountId: 7, companyId: 42 }

describe('cutting words', () => {
  const cases: Record<string, [text: string, words: string[]]> = {
    'letters and digits, whatever is between': ['Form 12: a_b-c, "d"!', ['form', '12', 'a', 'b', 'c', 'd']],
    'an address is its parts': ['Ada.L@Example.org', ['ada', 'l', 'example', 'org']],
    'each word once': ['the cat and The CAT', ['the', 'cat', 'and']],
    'each word once, among many too': [
      Array.from({ length: 200 }, (_, n) => `w${n % 50}`).join(' '),
      Array.from({ length: 50 }, (_, n) => `w${n}`),
    ],
    'accents do not matter': ['Zoë Ångström Dvořák e\u0301', ['zoe', 'angstrom', 'dvorak', 'e']],
    'letters with a stroke neither': ['Straße STRAẞE Łódź Ærø Þór', ['strasse', 'lodz', 'aero', 'thor']],
    'all kinds of i are one': ['İstanbul ISTANBUL ıstanbul istanbul', ['istanbul']],
    'both kinds of sigma are one': ['ΟΔΟΣ οδός', ['οδοσ']],
    'compatible forms are one': ['ｗｉｄｅ ﬁne ² Ⅳ', ['wide', 'fine', '2', 'iv']],
    'an emoji is a word, its skin is not': ['ok👍🏽 😀😀', ['ok', '👍', '😀']],
    'without spaces every two characters, and the last': ['東京都', ['東京', '京都', '都']],
    'scripts may meet in one run': ['iPhoneを買う', ['iphone', 'を買', '買う', 'う']],
    nothing: [' \t\n.,;', []],
  }
  for (const [name, [text, words]] of Object.entries(cases)) {
    test(name, () => assert.deepEqual(cutWords(text), words))
  }

  test('a text without accents goes another way to the same words', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 60, unit: 'grapheme-ascii' }), (text) => {
        assert.deepEqual(cutWords(`${text} é`), Array.from(new Set([...cutWords(text), 'e'])))
      }),
    )
  })

  test('a long word is cut, and so is the one that is looked for', () => {
    assert.deepEqual(cutWords('x'.repeat(1000)), ['x'.repeat(MAX_WORD_LENGTH)])
    assert.deepEqual(cutWords('é'.repeat(1000)), ['e'.repeat(MAX_WORD_LENGTH)])
    assert.deepEqual(cutWords('𝒳'.repeat(1000), '𐐷'.repeat(1000)), [
      'x'.repeat(MAX_WORD_LENGTH),
      '𐐷'.repeat(MAX_WORD_LENGTH),
    ])
  })

  test('a text made of words alone has a bounded number of them', () => {
    const text = Array.from({ length: 3 * MAX_WORDS }, (_, n) => n.toString(36)).join(' ')
    assert.equal(cutWords(text).length, MAX_WORDS)
  })

  test('any text: words hold letters, digits and emoji, and cutting them again changes nothing', () => {
    fc.assert(
      fc.property(anyText(), anyText(), (one, other) => {
        const words = cutWords(one, null, other)
        for (const word of words) {
          assert.match(word, /^([\p{L}\p{N}ー]+|\p{Extended_Pictographic})$/u)
          assert.ok(word.isWellFormed())
          assert.ok(Array.from(word).length <= MAX_WORD_LENGTH)
          assert.ok(cutWords(word).includes(word), `${word} becomes ${cutWords(word)}`)
        }
        assert.equal(new Set(words).size, words.length)
      }),
      { numRuns: 500 },
    )
  })
})

test('an e-mail address is compared without regard to case and space around it', () => {
  assert.equal(foldEmail(' Ada@Example.ORG '), 'ada@example.org')
})

test('a query has at most 8 words; of a script without spaces it has as few pairs as contain every character', () => {
  assert.deepEqual(queryWords('Ada  ada Malt'), ['ada', 'malt'])
  assert.deepEqual(queryWords('東'), ['東'])
  assert.deepEqual(queryWords('東京都'), ['東京', '京都'])
  assert.deepEqual(queryWords('東京都庁'), ['東京', '都庁'])
  const text = '一二三四五六七八九十'
  for (let from = 0; from < 8; from++) {
    for (let to = from + 1; to <= 10; to++) {
      const part = text.slice(from, to)
      const words = queryWords(part)
      assert.equal(words.length, Math.ceil(part.length / 2))
      for (const character of part) assert.ok(words.some((word) => word.includes(character)))
      for (const word of words) assert.ok(cutWords(text).some((stored) => stored.startsWith(word)))
    }
  }
  assert.equal(queryWords(Array.from({ length: 8 }, (_, n) => `w${n}`).join(' ')).length, 8)
  assert.throws(() => queryWords(Array.from({ length: 9 }, (_, n) => `w${n}`).join(' ')), /at most 8 words/)
  assert.throws(() => queryWords('-- !'), /letter or a digit/)
})

describe('a search', () => {
  const ONE = { tenant: TENANT, words: ['xy'], below: SPAN_IDS, limit: 5 }

  /** Runs a search over events that all have the word, and notes what it asks. */
  function run(ids: readonly number[], limit: number, below = Number.MAX_SAFE_INTEGER) {
    const queries: SpanQuery[] = []
    const course = search({
      tenant: TENANT,
      words: ['an', 'be'],
      below,
      limit,
      spansPerQuery: [1, 4, 16],
      isOver: () => false,
    })
    let asked = course.next()
    while (!asked.done) {
      const question = asked.value
      if (typeof question === 'number') {
        asked = course.next(ids.filter((id) => id < question).slice(-1))
        continue
      }
      queries.push(question)
      const spans = question.spans.map(([first]) => Number(first!.text.split('.')[2]))
      const found = ids.filter((id) => id < question.below && spans.includes(spanOf(id))).toReversed()
      asked = course.next(found.slice(0, question.limit))
    }
    return { ...asked.value, queries }
  }

  test('asks for the newest span first, and stops when it has enough', () => {
    const ids = Array.from({ length: 100 }, (_, n) => 5 * SPAN_IDS + n)
    const { queries, ids: found, searchedDownTo } = run(ids, 10)
    assert.deepEqual(found, ids.slice(-10).toReversed())
    assert.equal(searchedDownTo, found.at(-1))
    assert.deepEqual(
      queries.map(({ spans }) => spans),
      [
        [
          [
            { text: '42.7.5.an', isWhole: false },
            { text: '42.7.5.be', isWhole: false },
          ],
        ],
      ],
    )
  })

  test('asks for more spans at once the longer it finds nothing, and passes over those without events', () => {
    const ids = [3, 40 * SPAN_IDS, 41 * SPAN_IDS, 900 * SPAN_IDS]
    const { queries, ids: found, searchedDownTo } = run(ids, 10)
    assert.deepEqual(found, ids.toReversed())
    assert.equal(searchedDownTo, null)
    assert.deepEqual(
      queries.map(({ spans }) => spans.length),
      [1, 4, 1],
    )
  })

  test('ends somewhere, and goes on from there', () => {
    const ids = Array.from({ length: 9000 }, (_, n) => n * SPAN_IDS)
    const none = search({ ...ONE, below: 9000 * SPAN_IDS, spansPerQuery: [1, 4, 16], isOver: () => false })
    let questions = 0
    let asked = none.next()
    while (!asked.done) {
      questions += 1
      const question = asked.value
      asked = none.next(typeof question === 'number' ? ids.filter((id) => id < question).slice(-1) : [])
    }
    assert.ok(questions <= 600)
    const { searchedDownTo } = asked.value
    assert.ok(searchedDownTo !== null && searchedDownTo > 0)
    assert.deepEqual(run(ids, 3, searchedDownTo).ids[0], searchedDownTo - SPAN_IDS)
  })

  test('stops when the time is over, after one query at least, and says how far it came', () => {
    const course = search({ ...ONE, below: 9 * SPAN_IDS, spansPerQuery: [1], isOver: () => true })
    assert.equal(course.next().value, 9 * SPAN_IDS)
    assert.equal((course.next([9 * SPAN_IDS - 1]).value as SpanQuery).spans.length, 1)
    assert.deepEqual(course.next([]), { done: true, value: { ids: [], searchedDownTo: 8 * SPAN_IDS } })
  })

  test('looks for a single letter or digit as a whole word, and for a single character of a script without spaces as a prefix', () => {
    const [terms] = spanQueryFor(TENANT, ['a', '7', '京', 'ab'], 1).spans
    assert.deepEqual(
      terms!.map(({ isWhole }) => isWhole),
      [true, true, false, false],
    )
  })

  test('leaves out words that others begin with, but not whole words', () => {
    const course = search({ ...ONE, words: ['an', 'anna', 'a'], spansPerQuery: [1], isOver: () => true })
    course.next()
    const [terms] = (course.next([1]).value as SpanQuery).spans
    assert.deepEqual(
      terms!.map(({ text }) => text.split('.').at(-1)),
      ['anna', 'a'],
    )
  })

  test('of one event asks for that event alone', () => {
    assert.deepEqual(spanQueryFor(TENANT, ['an'], SPAN_IDS), {
      spans: [[{ text: `${wordPrefix(TENANT, 1)}an`, isWhole: false }]],
      below: SPAN_IDS + 1,
      limit: 1,
    })
  })
})

test('an event is found by its first different words: those of the first text, then of the next', () => {
  assert.deepEqual(firstWords(4, 'Ada L', null, 'to be or not to be'), ['ada', 'l', 'to', 'be'])
  assert.deepEqual(firstWords(9, 'Ada L', null, 'to be or not to be'), ['ada', 'l', 'to', 'be', 'or', 'not'])
  assert.deepEqual(firstWords(0, 'Ada'), [])
})

test('however long a text without new words is, no more than 16 characters a word are looked at', () => {
  const text = `${'another '.repeat(1000)}last`
  assert.deepEqual(firstWords(256, text), ['another'])
  // The control: with more words the end is looked at.
  assert.deepEqual(firstWords(2048, text), ['another', 'last'])
})

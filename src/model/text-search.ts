// Full-text search: cuts text into words, folds them, and plans a search over spans of ids. Our own code does this, so
// that every database finds the same. A query is cut by the same function; each of its words must be a prefix of a word
// of the event.
//
// - Case and accents do not matter: "Zoë" is "zoe", "Straße" is "strasse", "İstanbul" and "ISTANBUL" are "istanbul".
// - A word is a run of letters and digits. An emoji is a word. In scripts without spaces, every two neighbouring
//   characters are a word and so is the last one: "東京都" is 東京, 京都, 都. So any part of such a text is found.
// - A stored word begins with its tenant and with the span of ids that its event is in. So a search touches words of
//   its own tenant only and reads the newest span first: a prefix that a million events share costs no more than one
//   that a few thousand share.

import type { Tenant } from './principal.ts'

/** Longer words are cut, in queries as well, so that they still match. */
export const MAX_WORD_LENGTH = 40
/** Of one event, whatever the setting; bounds hostile texts. */
export const MAX_WORDS = 2048
/** In one query. */
export const MAX_QUERY_WORDS = 16

const WORD = /[\p{L}\p{N}]+|\p{Extended_Pictographic}/gu
const MARKS = /\p{M}+/gu
const ASCII_ONLY = /^[\0-\x7f]*$/
const ASCII_WORD = /[a-z0-9]+/g
/** Scripts without spaces between words. */
const UNSPACED = /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmr}\p{sc=Mymr}]/u
const UNSPACED_RUN =
  /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmr}\p{sc=Mymr}ー]+|[^\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmr}\p{sc=Mymr}ー]+/gu

/** Letters with a stroke or tail that people type without it, and that Unicode does not decompose. */
const PLAIN: Readonly<Record<string, string>> = {
  ß: 'ss',
  æ: 'ae',
  œ: 'oe',
  ø: 'o',
  đ: 'd',
  ð: 'd',
  þ: 'th',
  ł: 'l',
  ħ: 'h',
  ı: 'i',
  ς: 'σ',
}
const TO_PLAIN = new RegExp(`[${Object.keys(PLAIN).join('')}]`, 'gu')

/** The distinct words of the texts, in the order of their first appearance. */
export function cutWords(...texts: readonly (string | null)[]): string[] {
  const words = new DistinctWords()
  for (const text of texts) {
    if (text === null) continue
    if (ASCII_ONLY.test(text)) {
      for (const word of text.toLowerCase().match(ASCII_WORD) ?? []) words.add(cutTo(word, MAX_WORD_LENGTH))
    } else {
      for (const run of fold(text).match(WORD) ?? []) addRun(run, words)
    }
  }
  return words.list.length > MAX_WORDS ? words.list.slice(0, MAX_WORDS) : words.list
}

/** Characters looked at for each word wanted: more than a word and the space behind it usually take. */
const CHARACTERS_PER_WORD = 16

/**
 * The words that an event is found by: the first `maxWords` different ones, the first texts first. Bounds the text as well as
 * the words, so that an event without new words costs no more than one with many.
 */
export function firstWords(maxWords: number, ...texts: readonly (string | null)[]): readonly string[] {
  let left = maxWords * CHARACTERS_PER_WORD
  const looked = texts.map((text) => {
    const start = text?.slice(0, left) ?? null
    left -= start?.length ?? 0
    return start
  })
  return cutWords(...looked).slice(0, maxWords)
}

/** The words of a query; throws if it has none or too many. The message is the second half of a sentence. */
export function queryWords(text: string): readonly string[] {
  const words = cutWords(text)
  if (words.length === 0) throw new Error('must contain a letter or a digit')
  if (words.length > MAX_QUERY_WORDS) throw new Error(`must contain at most ${MAX_QUERY_WORDS} words`)
  return words
}

/** The form in which e-mail addresses are compared. */
export function foldEmail(email: string): string {
  return email.trim().toLowerCase()
}

function fold(text: string): string {
  return withoutMarks(
    withoutMarks(text)
      .toLowerCase()
      .replace(TO_PLAIN, (letter) => PLAIN[letter] ?? letter),
  )
}

function withoutMarks(text: string): string {
  return text.normalize('NFKD').replace(MARKS, '')
}

function addRun(run: string, words: DistinctWords): void {
  if (!UNSPACED.test(run)) {
    words.add(cutTo(run, MAX_WORD_LENGTH))
    return
  }
  for (const part of run.match(UNSPACED_RUN) ?? []) {
    if (!UNSPACED.test(part)) {
      words.add(cutTo(part, MAX_WORD_LENGTH))
      continue
    }
    const characters = Array.from(part)
    for (const [at, character] of characters.entries()) words.add(character + (characters[at + 1] ?? ''))
  }
}

/** Up to this size a list search takes half the time of a Set. */
const FEW = 32

class DistinctWords {
  readonly list: string[] = []
  #set: Set<string> | null = null

  add(word: string): void {
    if (this.list.length < FEW) {
      if (this.list.includes(word)) return
    } else {
      this.#set ??= new Set(this.list)
      if (this.#set.has(word)) return
      this.#set.add(word)
    }
    this.list.push(word)
  }
}

/** Cuts by code points, so that no surrogate pair is split. */
function cutTo(word: string, length: number): string {
  return word.length <= length ? word : Array.from(word).slice(0, length).join('')
}

/** Ids per span. */
export const SPAN_IDS = 16_384
/** Spans per query: the newest alone, then more and more, since common words are found in the first. */
const SPANS_PER_QUERY = [1, 4, 16, 64] as const
/** Then the search stops and says how far it came. */
const MAX_QUERIES = 20

export function spanOf(id: number): number {
  return Math.floor(id / SPAN_IDS)
}

/** Prefix of a tenant's words in a span. Its dots occur in no word. */
export function wordPrefix({ companyId, accountId }: Tenant, span: number): string {
  return `${companyId}.${accountId}.${span}.`
}

export interface Search {
  readonly tenant: Tenant
  readonly words: readonly string[]
  /** Ids below this one. */
  readonly below: number
  readonly limit: number
}

/** One query to the database: the events that have all words in one of the spans, highest ids first, below the bound. */
export interface SpanQuery {
  /** For each span, the word prefixes that an event must have. */
  readonly spans: readonly (readonly string[])[]
  readonly below: number
  readonly limit: number
}

export interface SearchResult {
  /** Highest first. */
  readonly ids: readonly number[]
  /** Every id at or above this was searched; null: the search reached the end. */
  readonly searchedDownTo: number | null
}

/** Query for one event: it has the words if it is the highest match below the next id. */
export function spanQueryFor(tenant: Tenant, words: readonly string[], id: number): SpanQuery {
  const prefix = wordPrefix(tenant, spanOf(id))
  return { spans: [words.map((word) => prefix + word)], below: id + 1, limit: 1 }
}

/**
 * The search algorithm, independent of the database. It yields queries and receives ids: for a SpanQuery the matches,
 * for a number the tenant's highest id below it, so that the search skips ids of other tenants.
 */
export function* search({
  tenant,
  words,
  below,
  limit,
}: Search): Generator<SpanQuery | number, SearchResult, number[]> {
  const ids: number[] = []
  let from = below
  for (let query = 0; query < MAX_QUERIES; query++) {
    const [highest] = yield from
    if (highest === undefined) return { ids, searchedDownTo: null }
    const top = spanOf(highest)
    const bottom = Math.max(0, top - (SPANS_PER_QUERY[query] ?? SPANS_PER_QUERY.at(-1)!) + 1)
    const spans = Array.from({ length: top - bottom + 1 }, (_, n) => {
      const prefix = wordPrefix(tenant, top - n)
      return words.map((word) => prefix + word)
    })
    ids.push(...(yield { spans, below: from, limit: limit - ids.length }))
    if (ids.length >= limit) return { ids, searchedDownTo: ids.at(-1)! }
    from = bottom * SPAN_IDS
  }
  return { ids, searchedDownTo: from }
}

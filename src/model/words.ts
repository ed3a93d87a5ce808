// The words that events are searched by. Cut and folded here, by our own code, so that every database finds the same; a
// query is cut by the same function, and each of its words has to be the beginning of a word of the event.
//
// - Case and accents do not matter: "Zoë" is "zoe", "Straße" is "strasse", "İstanbul" and "ISTANBUL" are "istanbul".
// - A word is a run of letters and digits. An emoji is a word. Where a script sets no spaces, every two neighbouring
//   characters are a word and so is the last one: "東京都" is 東京, 京都, 都. So any part of such a text is found.
// - A stored word begins with its tenant and with the span of ids that its event lies in. A search so touches the words of
//   its own tenant only, and takes the newest span first: a beginning that a million events share costs no more than one
//   that a few thousand share.

import type { Tenant } from './principal.ts'

/** Longer words are cut; a query's as well, so that they still find each other. */
export const MAX_WORD_LENGTH = 40
/** More than any text of the size that is indexed needs, and a bound for those made to hurt. */
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

/** Letters that people type without their stroke or tail, and that Unicode does not take apart. */
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

/** The words of a query; throws with a sentence's second half where they cannot be looked for. */
export function queryWords(text: string): readonly string[] {
  const words = cutWords(text)
  if (words.length === 0) throw new Error('must contain a letter or a digit')
  if (words.length > MAX_QUERY_WORDS) throw new Error(`must contain at most ${MAX_QUERY_WORDS} words`)
  return words
}

/** What an e-mail address is compared by. */
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

/** Up to so many, going through a list takes half the time of a Set. */
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

/** By characters, so that none is cut in half. */
function cutTo(word: string, length: number): string {
  return word.length <= length ? word : Array.from(word).slice(0, length).join('')
}

/** How many ids a span has. */
export const SPAN_IDS = 16_384
/** A search looks at the newest span alone, then at more and more of them at once: what is common is found in the first. */
const SPANS_AT_ONCE = [1, 4, 16, 64] as const
/** Then it stops and says how far it came. */
const MAX_LOOKS = 20

export function spanOf(id: number): number {
  return Math.floor(id / SPAN_IDS)
}

/** What the words of a tenant in a span begin with. Its characters are in no word. */
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

/** One question to the database: all words of one of the spans, highest ids first, below the bound. */
export interface Look {
  /** For each span the beginnings that an event has to have words for. */
  readonly spans: readonly (readonly string[])[]
  readonly below: number
  readonly limit: number
}

export interface SearchResult {
  /** Highest first. */
  readonly ids: readonly number[]
  /** Everything at or above is looked at; null when there is nothing below. */
  readonly searchedDownTo: number | null
}

/** Whether one event has the words: it is found right below the id after it. */
export function lookAt(tenant: Tenant, words: readonly string[], id: number): Look {
  const prefix = wordPrefix(tenant, spanOf(id))
  return { spans: [words.map((word) => prefix + word)], below: id + 1, limit: 1 }
}

/**
 * The course of a search, whatever database is asked. It yields what it wants to know and is given ids: for a Look those
 * found, for a number the tenant's highest id below it (so that a tenant does not walk through others' ids).
 */
export function* search({ tenant, words, below, limit }: Search): Generator<Look | number, SearchResult, number[]> {
  const ids: number[] = []
  let from = below
  for (let look = 0; look < MAX_LOOKS; look++) {
    const [highest] = yield from
    if (highest === undefined) return { ids, searchedDownTo: null }
    const top = spanOf(highest)
    const bottom = Math.max(0, top - (SPANS_AT_ONCE[look] ?? SPANS_AT_ONCE.at(-1)!) + 1)
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

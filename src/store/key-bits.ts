// Which dedupe keys are surely new, so that most messages need no lookup in `dedupe`.
//
// Two bits of memory for each key that is known, whether it is in `dedupe` or among the newest. Bits cannot be taken back and a table
// of them cannot grow, so it is made anew from time to time, and at the start: what is in `dedupe` is read in slices by whoever has the
// database, and keys that come meanwhile are added. Until that is done, every key may be known; or the table before it is asked, which knows
// as much and is only more crowded.
//
// Promises: of a key that is known it is never said that it is new, as long as whoever asks has seen to it that nobody else stored messages
// since, or called `startAgain`. The other way round it may be: whoever is told "maybe" looks.

import { highWord, lowWord, type RecentKeys } from './recent-keys.ts'

const BEFORE_ALL: Place = [Number.MIN_SAFE_INTEGER, new Uint8Array()]

/** Bits for each key when a table is made; with fewer than the least it is made anew, larger. */
const BITS_A_KEY = 16
const LEAST_BITS_A_KEY = 8
/** 1 MiB: enough for a million keys. */
const FEWEST_BITS = 2 ** 23
/** 32 MiB. With more than 33 million keys the table becomes more crowded, and more messages are looked up. */
const MOST_BITS = 2 ** 28
const GROWTH = 4

/** A key in the order of `dedupe`. */
export type Place = [companyId: number, digest: Uint8Array]

export interface KeyBitsBounds {
  /** How many keys are read in one go. */
  readonly sliceKeys: number
  readonly fewestBits?: number
  readonly mostBits?: number
}

export class KeyBits {
  readonly #recent: RecentKeys
  readonly #bounds: Required<KeyBitsBounds>
  /** Knows every key. */
  #whole: KeyTable | null = null
  /** Knows every key once `dedupe` is read to its end. */
  #growing: KeyTable | null = null
  /** How large the next one should be. It is made when it is read, and not in the commit that finds it is wanted. */
  #wantedBits: number | null = null
  #readTo = BEFORE_ALL

  constructor(recent: RecentKeys, { sliceKeys, fewestBits = FEWEST_BITS, mostBits = MOST_BITS }: KeyBitsBounds) {
    this.#recent = recent
    this.#bounds = { sliceKeys, fewestBits, mostBits }
  }

  /** `dedupe` was read to its end: most new keys are known to be new. */
  get isWhole(): boolean {
    return this.#whole !== null
  }

  /** `dedupe` is to be read, or read on. */
  get hasMore(): boolean {
    return this.#growing !== null || this.#wantedBits !== null
  }

  /** From nothing: at the start, and when somebody else has stored messages. `keys`: about how many there are. */
  startAgain(keys: number): void {
    this.#whole = null
    this.#growing = null
    this.#wantedBits = keys * BITS_A_KEY
  }

  add(key: Uint8Array): void {
    this.#add(highWord(key), lowWord(key))
  }

  mayHave(key: Uint8Array): boolean {
    return this.#whole === null || this.#whole.has(highWord(key), lowWord(key))
  }

  /** Both, of one among keys that lie behind each other: whether it may have been there, and from now on it is. */
  mayHaveHad(keys: Uint8Array, at: number): boolean {
    const high = highWord(keys, at)
    const low = lowWord(keys, at)
    const had = this.#whole === null || this.#whole.has(high, low)
    if (!had || this.#growing) this.#add(high, low)
    return had
  }

  #add(high: number, low: number): void {
    this.#growing?.add(high, low)
    const whole = this.#whole
    if (!whole) return
    whole.add(high, low)
    if (whole.isCrowded && !this.hasMore && whole.bits < this.#bounds.mostBits) this.#wantedBits = whole.bits * GROWTH
  }

  /** The keys to be read now: so many behind this one, in their order. */
  next(): [...Place, count: number] {
    if (this.#wantedBits !== null) this.#begin(this.#wantedBits)
    return [...this.#readTo, this.#bounds.sliceKeys]
  }

  /** What was found there, outside of any transaction. If that failed, it can be tried again. */
  learn(rows: readonly Place[]): void {
    const table = this.#growing
    if (!table) return
    for (const [, digest] of rows) table.add(highWord(digest), lowWord(digest))
    this.#readTo = rows.at(-1) ?? this.#readTo
    if (rows.length === this.#bounds.sliceKeys) return
    this.#whole = table
    this.#growing = null
  }

  /** What is among the newest now may be put into `dedupe` behind the place where it is being read. */
  #begin(wantedBits: number): void {
    const { fewestBits, mostBits } = this.#bounds
    let bits = fewestBits
    while (bits < wantedBits && bits < mostBits) bits *= 2
    const table = new KeyTable(bits)
    this.#recent.visit((high, low) => {
      table.add(high, low)
    })
    this.#growing = table
    this.#wantedBits = null
    this.#readTo = BEFORE_ALL
  }
}

class KeyTable {
  readonly bits: number
  readonly #words: Uint32Array
  readonly #mask: number
  #size = 0

  /** A power of two, 2 ** 31 at most. */
  constructor(bits: number) {
    this.bits = bits
    this.#mask = bits - 1
    this.#words = new Uint32Array(bits / 32)
  }

  get isCrowded(): boolean {
    return this.#size * LEAST_BITS_A_KEY > this.bits
  }

  add(high: number, low: number): void {
    if (this.has(high, low)) return
    this.#size += 1
    this.#set(high & this.#mask)
    this.#set(low & this.#mask)
  }

  has(high: number, low: number): boolean {
    return this.#isSet(high & this.#mask) && this.#isSet(low & this.#mask)
  }

  #set(bit: number): void {
    this.#words[bit >>> 5]! |= 1 << (bit & 31)
  }

  #isSet(bit: number): boolean {
    return (this.#words[bit >>> 5]! & (1 << (bit & 31))) !== 0
  }
}

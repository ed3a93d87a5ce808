// The pen: who holds it, the only node that writes, may put the dedupe keys of a burst later (migrations/0012_late_keys.sql,
// docs/adr/0038). Until they are put it knows them itself, and of most others it knows that they are new.
//
// Promises: a key that may be in a row of arrivals and not in `dedupe` is known here, from before its batch is sent. Two batches with
// the same key are never under way under one pen. A pen that is let go of is not used again.

import { randomUUID } from 'node:crypto'
import { DIGEST_BYTES } from '../../model/dedupe.ts'
import { KeyBits } from '../key-bits.ts'
import { RecentKeys } from '../recent-keys.ts'

/** What is written under no pen takes it away from whoever has it. */
export const NO_PEN = ''

/** So many messages may wait for their keys: whoever takes the pen away has to put them all, within a second or so. */
const MOST_LATE = 65_536
/** It is not worth looking for fewer that are put. */
const FEWEST_FORGOTTEN = 8192
/** Read in one go. */
const SLICE_KEYS = 512

/** A batch under the pen. */
export interface Entry {
  /** From 1. */
  readonly number: number
  /** The places, from 1, of keys that may be in `dedupe`. None of the others is. */
  readonly doubts: readonly number[]
}

/** What the database says of a batch under the pen, if it says anything. */
export interface Heard {
  /** The first of its ids, which follow each other: its keys are late. */
  readonly lateFrom: number | null
  /** The keys of all messages up to this id are put; null: the pen is not held. */
  readonly putThrough: number | null
}

export class Pen {
  readonly name = randomUUID()
  /** Of batches that are late or under way, under their numbers. */
  readonly #keys = new RecentKeys()
  readonly bits = new KeyBits(this.#keys, { sliceKeys: SLICE_KEYS })
  #entered = 0
  /** The batches whose keys are known, by number: the last id of one that is stored; null as long as it is under way. */
  readonly #batches = new Map<number, number | null>()
  #forgotten = 0
  #overSince: number | null = null

  /** Keys may come late under it. Not as long as each would have to be looked for first, which takes longer than to put it. */
  get isOpen(): boolean {
    return this.bits.isWhole && this.#keys.size < MOST_LATE
  }

  /** Since when it is used no more, by `performance.now`. */
  get overSince(): number | null {
    return this.#overSince
  }

  /**
   * The database says that we hold it. Not before: the question may be stuck, and be answered when all that came behind it was tried
   * again. `keys`: about how many there are in `dedupe`.
   */
  give(keys: number): void {
    this.bits.startAgain(keys)
  }

  letGo(): void {
    this.#overSince ??= performance.now()
  }

  /** Null where one of them is known: the batch has to be written under no pen, and so this one is let go of. */
  enter(keys: Uint8Array): Entry | null {
    const number = this.#entered + 1
    const doubts: number[] = []
    for (let at = 0; at < keys.length; at += DIGEST_BYTES) {
      if (this.#keys.find(keys, at) !== 0) {
        this.letGo()
        return null
      }
      this.#keys.add(keys, number, at)
      if (this.bits.mayHaveHad(keys, at)) doubts.push(at / DIGEST_BYTES + 1)
    }
    this.#entered = number
    this.#batches.set(number, null)
    return { number, doubts }
  }

  /** It is over; and what was heard of it, if anything. */
  leave({ number }: Entry, keys: Uint8Array, heard: Heard | undefined): void {
    const lateFrom = heard?.lateFrom ?? null
    if (lateFrom === null) {
      for (let at = 0; at < keys.length; at += DIGEST_BYTES) this.#keys.remove(keys, number, at)
      this.#batches.delete(number)
    } else {
      this.#batches.set(number, lateFrom + keys.length / DIGEST_BYTES - 1)
    }
    if (!heard) return
    const { putThrough } = heard
    if (putThrough === null) this.letGo()
    else if (putThrough >= this.#forgotten + FEWEST_FORGOTTEN) this.#forget(putThrough)
  }

  /** Those before the first that is under way, or has a key that is late. */
  #forget(putThrough: number): void {
    let first = this.#entered + 1
    for (const [number, lastId] of this.#batches) {
      if (number < first && (lastId === null || lastId > putThrough)) first = number
    }
    for (const number of this.#batches.keys()) if (number < first) this.#batches.delete(number)
    this.#keys.forgetThrough(first - 1)
    this.#forgotten = putThrough
  }
}

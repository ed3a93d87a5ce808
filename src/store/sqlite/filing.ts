// Filing: moves what has arrived to its places in the journal, in id order. No sender waits for it: a burst costs them the short
// commit of an arrival, and the rest is done after it. The index does, and whoever copies.
//
// Where somebody remembers them, the keys come later still, in large groups (unsorted-keys.ts).
//
// A slice is one transaction: every message is always in one of the two places, whoever is killed.

import type { DatabaseSync } from 'node:sqlite'
import { StoreFailure } from '../contract/failure.ts'
import type { RecentKeys } from '../recent-keys.ts'
import { type AppendRow, unpackBatch } from './append-batch.ts'
import { prepareArrivedBatches } from './arrivals.ts'
import { inTransaction } from './connection.ts'
import { prepareJournalRows } from './journal-rows.ts'
import { prepareSequence } from './sequence.ts'
import { prepareUnsortedKeys } from './unsorted-keys.ts'

const SELECT_ANY = 'SELECT 1 FROM arrivals WHERE first_id > 0 LIMIT 1'
const DELETE_BATCHES = 'DELETE FROM arrivals WHERE first_id <= ?'

/** A slice delays those behind it. */
const MAX_SLICE_BYTES = 2 * 1024 * 1024

interface Arrived {
  readonly id: number
  readonly row: AppendRow
}

export interface Filed {
  readonly rows: number
  readonly hasMore: boolean
}

export interface Filing {
  /** About so many rows, in a transaction of its own, and then some keys that are due, in another. */
  fileSome(maxRows: number): Filed
  /** Some keys, due or not. False if there are none. */
  sortNow(): boolean
  /** All there are, and all keys, in the transaction that is open. */
  fileAll(): void
}

/** `recent`: where keys are remembered until they are in `dedupe`. */
export function prepareFiling(
  db: DatabaseSync,
  recent: RecentKeys | null,
  keys = prepareUnsortedKeys(db, recent),
): Filing {
  const journal = prepareJournalRows(db)
  const eventIds = prepareSequence(db, 'events')
  const arrivedBatches = prepareArrivedBatches(db)
  const selectAny = db.prepare(SELECT_ANY)
  const deleteBatches = db.prepare(DELETE_BATCHES)

  function read(maxRows: number): Arrived[] {
    const arrived: Arrived[] = []
    let size = 0
    for (const { firstId, bytes } of arrivedBatches()) {
      let id = firstId
      for (const row of unpackBatch(bytes)) arrived.push({ id: id++, row })
      size += bytes.byteLength
      if (arrived.length >= maxRows || size >= MAX_SLICE_BYTES) break
    }
    return arrived
  }

  function write(arrived: readonly Arrived[]): readonly Arrived[] {
    if (arrived.length === 0) return arrived
    for (const { id, row } of arrived) journal.insertEvent(id, row, null)
    if (recent) keys.add(arrived)
    else for (const { id, row } of arrived) insertKey(id, row)
    eventIds.load()
    deleteBatches.run(arrived.at(-1)!.id)
    eventIds.save()
    return arrived
  }

  function insertKey(id: number, row: AppendRow): void {
    if (!journal.insertKey(id, row)) throw new StoreFailure('rejected', `the dedupe key of event ${id} is taken`)
  }

  return {
    fileSome(maxRows) {
      if (!selectAny.get()) {
        keys.forgetSorted()
        return { rows: 0, hasMore: false }
      }
      const { length: rows } = inTransaction(db, () => write(read(maxRows)))
      keys.sortSome()
      return { rows, hasMore: selectAny.get() !== undefined }
    },
    sortNow: keys.sortNow,
    fileAll() {
      for (let arrived = read(1); arrived.length > 0; arrived = read(1)) write(arrived)
      keys.sortAll()
    },
  }
}

// The dedupe keys of what was filed last. Keys come in no order: put into `dedupe` one by one, each touches a page of its own, and
// that was most of what filing costs. So they lie in `unsorted_keys` as they came, and go to `dedupe` in large groups, sorted.
// Who takes messages in remembers them meanwhile (recent-keys.ts).
//
//   key   event id 8 · company id 8 · digest 16 · SHA-256 32 · minted key 16
//
// A group is read row by row, put in slice by slice, and its rows are deleted with the last: a little at a time, since senders wait
// for each. Whoever is killed in between begins it again, and finds some of it there. This layout is on disk: it may only be changed together with a migration.

import type { DatabaseSync } from 'node:sqlite'
import { createMintedDigest, DIGEST_BYTES, SHA256_BYTES } from '../../model/dedupe.ts'
import { StoreFailure } from '../contract/failure.ts'
import type { RecentKeys } from '../recent-keys.ts'
import type { AppendRow } from './append-batch.ts'
import { filedThrough } from './arrivals.ts'
import { inTransaction } from './connection.ts'
import { prepareInsertKey } from './journal-rows.ts'

const INSERT = 'INSERT INTO unsorted_keys (first_id, keys) VALUES (?, ?)'
const SELECT_AROUND = 'SELECT first_id, keys FROM unsorted_keys WHERE first_id <= ? ORDER BY first_id DESC LIMIT 1'
const SELECT_NEXT = 'SELECT first_id, keys FROM unsorted_keys WHERE first_id > ? ORDER BY first_id LIMIT 1'
const DELETE_THROUGH = 'DELETE FROM unsorted_keys WHERE first_id <= ?'

const COMPANY_AT = 8
const DIGEST_AT = 16
const SHA256_AT = DIGEST_AT + DIGEST_BYTES
const MINTED_AT = SHA256_AT + SHA256_BYTES
const KEY_BYTES = MINTED_AT + DIGEST_BYTES

/** With a million keys stored, three of such a group share a page. */
const GROUP_KEYS = 65_536
/** Put in in one go, or read: it delays those behind it. */
const SLICE_KEYS = 512
const READ_SLICES = 16
/** The place of a key in its group takes so many bits of a number that is sorted, and its tenant and digest the others. */
const PLACE_BITS = 18
const ORDER_BITS = 53 - PLACE_BITS

export interface DedupeKey {
  readonly id: number
  readonly companyId: number
  readonly digest: Uint8Array
  readonly sha256: Uint8Array
  readonly mintedKey: Uint8Array
}

export interface UnsortedKeys {
  /** In the transaction that files them; in id order. */
  add(filed: readonly Filed[]): void
  /** In a transaction of its own: the next of the group, if one is full or was begun, and its turn has come. */
  sortSome(): void
  /** The next of what there is, full group or not. False if there was nothing. */
  sortNow(): boolean
  /** All there is, in the transaction that is open. */
  sortAll(): void
  /** When all that has arrived is filed: what somebody else has sorted in need not be remembered any longer. */
  forgetSorted(): void
}

interface Filed {
  readonly id: number
  readonly row: AppendRow
}

/** By the id of its event. */
export function prepareFindUnsorted(db: DatabaseSync): (id: number) => DedupeKey | null {
  const select = db.prepare(SELECT_AROUND)
  return (id) => {
    const row = select.get(id)
    if (!row) return null
    const bytes = bytesOf(row as unknown as Row)
    for (let at = 0; at < bytes.length; at += KEY_BYTES) if (bytes.readDoubleBE(at) === id) return keyAt(bytes, at)
    return null
  }
}

/** In id order, each row read when it is asked for. */
export function* unsortedKeys(db: DatabaseSync): Generator<DedupeKey> {
  for (const row of unsortedRows(db)) yield* keysIn(row)
}

function* unsortedRows(db: DatabaseSync): Generator<Row> {
  const select = db.prepare(SELECT_NEXT)
  for (let row = select.get(0); row; row = select.get(row.first_id as number)) yield row as unknown as Row
}

/** The key of every event before this id is in `dedupe`. */
export function sortedBefore(db: DatabaseSync): number {
  const first = db.prepare(SELECT_NEXT).get(0)
  return first ? (first.first_id as number) : Number.MAX_SAFE_INTEGER
}

/** `recent`: where keys are remembered until they are sorted in. */
export function prepareUnsortedKeys(
  db: DatabaseSync,
  recent: RecentKeys | null,
  groupKeys = GROUP_KEYS,
  sliceKeys = SLICE_KEYS,
): UnsortedKeys {
  const insert = db.prepare(INSERT)
  const selectNext = db.prepare(SELECT_NEXT)
  const deleteThrough = db.prepare(DELETE_THROUGH)
  const insertKey = prepareInsertKey(db)
  const mintedDigest = createMintedDigest()
  /** Also what was rolled back, or sorted in by somebody else: a group may turn out smaller. */
  let waiting = 0
  if (recent) for (const row of unsortedRows(db)) waiting += row.keys.byteLength / KEY_BYTES
  let group: Group | null = null
  /** Added since the last slice: the sorting is twice as quick as what comes in. */
  let added = 0

  /** Whole rows, until these are enough or the group is whole. */
  function read(into: Group, maxKeys: number): void {
    const enough = Math.min(groupKeys, into.size + maxKeys)
    while (into.size < enough) {
      const row = selectNext.get(into.lastRow) as unknown as Row | undefined
      if (!row) break
      into.add(row)
    }
    if (into.size < enough || into.size >= groupKeys) into.sort()
  }

  function write(keys: readonly DedupeKey[], isLast: boolean, lastRow: number): void {
    for (const { id, companyId, digest, sha256, mintedKey } of keys) {
      // A key that is there was put there before a kill. Were it another event's, `doctor` would tell, and messages go on.
      insertKey(id, companyId, digest, sha256, mintedKey)
    }
    if (isLast) deleteThrough.run(lastRow)
  }

  function sortSlice(): boolean {
    added = 0
    const current = (group ??= new Group())
    if (!current.isSorted) {
      read(current, READ_SLICES * sliceKeys)
      if (current.size > 0) return true
      // Somebody else has sorted them in.
      group = null
      waiting = 0
      return false
    }
    const keys = current.next(sliceKeys)
    const isLast = keys.length === current.left
    inTransaction(db, () => write(keys, isLast, current.lastRow))
    current.pass(keys.length)
    for (const { digest, id } of keys) recent?.remove(digest, id)
    if (isLast) {
      group = null
      waiting = Math.max(0, waiting - current.size)
    }
    return true
  }

  return {
    add(filed) {
      const bytes = Buffer.alloc(filed.length * KEY_BYTES)
      for (const [place, { id, row }] of filed.entries()) {
        const at = place * KEY_BYTES
        bytes.writeDoubleBE(id, at)
        bytes.writeDoubleBE(row.companyId, at + COMPANY_AT)
        bytes.set(row.digest, at + DIGEST_AT)
        bytes.set(row.sha256, at + SHA256_AT)
        bytes.set(mintedDigest(row.mintedKey), at + MINTED_AT)
      }
      insert.run(filed[0]!.id, bytes)
      waiting += filed.length
      added += filed.length
    },
    sortSome() {
      if (group ? 2 * added >= sliceKeys : waiting >= groupKeys) sortSlice()
    },
    sortNow: sortSlice,
    sortAll() {
      group = null
      for (;;) {
        const found = new Group()
        read(found, groupKeys)
        if (found.size === 0) return
        write(found.next(found.size), true, found.lastRow)
      }
    },
    forgetSorted() {
      if (recent && recent.size > waiting) recent.forgetThrough(Math.min(filedThrough(db), sortedBefore(db) - 1))
    },
  }
}

/** Some rows of keys, and in which order they are put in. */
class Group {
  size = 0
  lastRow = 0
  isSorted = false
  readonly #rows: Buffer[] = []
  #bytes: Buffer = Buffer.alloc(0)
  #order: Float64Array = new Float64Array()
  #next = 0

  add(row: Row): void {
    const bytes = bytesOf(row)
    this.#rows.push(bytes)
    this.size += bytes.length / KEY_BYTES
    this.lastRow = row.first_id
  }

  sort(): void {
    this.#bytes = Buffer.concat(this.#rows.splice(0))
    this.#order = orderOf(this.#bytes)
    this.isSorted = true
  }

  get left(): number {
    return this.size - this.#next
  }

  next(maxKeys: number): DedupeKey[] {
    return Array.from(this.#order.subarray(this.#next, this.#next + maxKeys), (ordered) =>
      keyAt(this.#bytes, (ordered % 2 ** PLACE_BITS) * KEY_BYTES),
    )
  }

  pass(keys: number): void {
    this.#next += keys
  }
}

/**
 * As `dedupe` is ordered, as far as the bits go: it only has to be near enough for neighbours to share a page. One number for each
 * key, its place in the lowest bits: numbers are sorted in a twentieth of the time that comparing bytes takes.
 */
function orderOf(bytes: Buffer): Float64Array {
  const order = new Float64Array(bytes.length / KEY_BYTES)
  // Two places in one number would be a key that nobody ever puts in.
  if (order.length > 2 ** PLACE_BITS) throw new RangeError(`a group of ${order.length} keys is too large`)
  const companyOf = (place: number) => bytes.readDoubleBE(place * KEY_BYTES + COMPANY_AT)
  const companies = new Set<number>()
  for (let place = 0; place < order.length; place++) companies.add(companyOf(place))
  const rank = new Map([...companies].sort((one, other) => one - other).map((company, at) => [company, at]))
  const digestBits = Math.min(32, ORDER_BITS - Math.ceil(Math.log2(rank.size)))
  for (let place = 0; place < order.length; place++) {
    const digest = bytes.readUInt32BE(place * KEY_BYTES + DIGEST_AT) >>> (32 - digestBits)
    order[place] = (rank.get(companyOf(place))! * 2 ** digestBits + digest) * 2 ** PLACE_BITS + place
  }
  return order.sort()
}

interface Row {
  readonly first_id: number
  readonly keys: Uint8Array
}

function* keysIn(row: Row): Generator<DedupeKey> {
  const bytes = bytesOf(row)
  for (let at = 0; at < bytes.length; at += KEY_BYTES) yield keyAt(bytes, at)
}

function bytesOf({ first_id: firstId, keys }: Row): Buffer {
  if (keys.byteLength === 0 || keys.byteLength % KEY_BYTES !== 0) {
    throw new StoreFailure('rejected', `the dedupe keys from event ${firstId} on are damaged`)
  }
  return Buffer.from(keys.buffer, keys.byteOffset, keys.byteLength)
}

function keyAt(bytes: Buffer, at: number): DedupeKey {
  return {
    id: bytes.readDoubleBE(at),
    companyId: bytes.readDoubleBE(at + COMPANY_AT),
    digest: bytes.subarray(at + DIGEST_AT, at + SHA256_AT),
    sha256: bytes.subarray(at + SHA256_AT, at + MINTED_AT),
    mintedKey: bytes.subarray(at + MINTED_AT, at + KEY_BYTES),
  }
}

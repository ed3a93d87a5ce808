// Append on SQLite: one transaction for all batches that are waiting, in the writer thread.
//
//   key   new → arrivals, to be filed later (or events, at once)  → stored
//       known → same minted key                                   → stored (our own retry)
//               bytes of the first                                → resend row → duplicate
//               bytes of a kept revision                          → resend row → conflict
//               other bytes                                       → revision   → conflict
//
// A key is known if it is among the newest, which the writer remembers, or in `dedupe`. Whoever does not remember (a command
// beside the server) files all that has arrived first, with its keys, and puts its own messages into their places at once.

import type { DatabaseSync } from 'node:sqlite'
import { createMintedDigest } from '../../model/dedupe.ts'
import type { AppendOutcome } from '../contract/append.ts'
import type { RecentKeys } from '../recent-keys.ts'
import {
  type AppendBatch,
  type AppendRow,
  boundsOf,
  createSeal,
  digestsOf,
  type Identity,
  rowAt,
  unpackBatch,
} from './append-batch.ts'
import { arrivedBatches } from './arrivals.ts'
import { inTransaction, storeFailure } from './connection.ts'
import type { Filing } from './filing.ts'
import { prepareJournalRows } from './journal-rows.ts'
import { type First, prepareKnownKeys } from './known-keys.ts'
import { readMeta } from './schema.ts'
import { prepareSequence } from './sequence.ts'
import type { StoredKeys } from './stored-keys.ts'
import { unsortedKeys } from './unsorted-keys.ts'

const INSERT_ARRIVALS = 'INSERT INTO arrivals (first_id, last_id, batch) VALUES (?, ?, ?)'
const SELECT_REVISION = "SELECT 1 FROM events WHERE revises = ? AND sha256 = ? AND kind = 'revision'"
const INSERT_RESEND =
  'INSERT INTO resends (id, company_id, event_id, received_at, key_id, request_id) VALUES (?, ?, ?, ?, ?, ?)'

/** A row of `arrivals` is read whole for any of its messages, and filed whole: so it is bounded. */
const MAX_ARRIVAL_ROWS = 128
const MAX_ARRIVAL_BYTES = 128 * 1024
/** With so many to be filed, messages go to their places at once, and senders wait for that: memory is bounded, and so is a start. */
const MOST_UNFILED = 2_000_000

/** An outcome on its way back to the server: what was stored, as nearly all is, is its id alone, which is the least to send. */
export type Written = number | Exclude<AppendOutcome, { outcome: 'stored' }>

export function outcomeOf(written: Written): AppendOutcome {
  return typeof written === 'number' ? { outcome: 'stored', id: written } : written
}

/** Several batches in one commit; the outcomes of each are its own. */
export type AppendAll = (batches: readonly AppendBatch[]) => Written[][]

interface SealedBatch extends Omit<AppendBatch, 'identities'> {
  readonly identities: readonly Identity[]
}

export function prepareAppend(
  db: DatabaseSync,
  filing: Filing,
  recent: RecentKeys | null,
  stored: StoredKeys | null = null,
  mostUnfiled = MOST_UNFILED,
): AppendAll {
  const known = prepareKnownKeys(db, recent, stored)
  const eventIds = prepareSequence(db, 'events')
  const resendIds = prepareSequence(db, 'resends')
  const journal = prepareJournalRows(db)
  const seal = createSeal(readMeta(db, 'dedupe_key'))
  const mintedDigest = createMintedDigest()
  const insertArrivals = db.prepare(INSERT_ARRIVALS)
  const selectRevision = db.prepare(SELECT_REVISION)
  const insertResend = db.prepare(INSERT_RESEND)
  if (recent) remember(db, recent)
  eventIds.load()
  /** If it is another at the next commit, somebody else has stored messages, with keys that `stored` has not seen. */
  let nextId = eventIds.peek()
  stored?.startAgain(nextId)
  /** This transaction has given ids to rows in their places. */
  let hasPlaced = false

  /** New ones lie down together, as they lie in the batch; the others are looked at one by one, behind them. */
  function appendPlain({ bytes, identities }: SealedBatch, keys: RecentKeys): Written[] {
    const firstId = eventIds.peek()
    const bounds = boundsOf(bytes)
    const fresh: number[] = []
    const ids = digestsOf(bytes).map((digest, place) => {
      // What is found among the recent may be another key: that is looked into behind the new ones.
      if (known.mayHave(identities[place]![1], digest)) return null
      const id = eventIds.take()
      keys.add(digest, id)
      stored?.add(digest)
      fresh.push(place)
      return id
    })
    insertFresh(bytes, bounds, fresh, firstId)
    return ids.map((id, place) => id ?? appendRow(rowAt(bytes, bounds[place]!)))
  }

  function insertFresh(bytes: Uint8Array, bounds: readonly number[], fresh: readonly number[], firstId: number): void {
    for (let from = 0; from < fresh.length; ) {
      let [to, size] = [from, 0]
      while (to < fresh.length && to - from < MAX_ARRIVAL_ROWS && size < MAX_ARRIVAL_BYTES) {
        size += bounds[fresh[to]! + 1]! - bounds[fresh[to]!]!
        to += 1
      }
      insertArrivals.run(firstId + from, firstId + to - 1, cut(bytes, bounds, fresh.slice(from, to)))
      from = to
    }
  }

  function appendRow(row: AppendRow): Written {
    const first = known.find(row.companyId, row.digest)
    if (first) return appendAgain(row, first)
    const id = eventIds.peek()
    journal.insertKey(id, row)
    stored?.add(row.digest)
    insertEvent(row, null)
    return id
  }

  function insertEvent(row: AppendRow, revises: number | null): void {
    journal.insertEvent(eventIds.take(), row, revises)
    hasPlaced = true
  }

  function appendAgain(row: AppendRow, { id, sha256, mintedKey }: First): Written {
    const isRetry = Buffer.compare(mintedDigest(row.mintedKey), mintedKey) === 0
    if (isRetry) return id
    const sameBytes = Buffer.compare(row.sha256, sha256) === 0
    if (sameBytes || selectRevision.get(id, row.sha256)) {
      insertResend.run(resendIds.take(), row.companyId, id, row.receivedAt, row.keyId, row.requestId)
    } else {
      insertEvent(row, id)
    }
    return { outcome: sameBytes ? 'duplicate' : 'conflict', id }
  }

  /** For a batch with a bad row: each row in a savepoint of its own, so that it fails alone. */
  function appendAlone(row: AppendRow): Written {
    const nextIds = [eventIds.peek(), resendIds.peek()] as const
    db.exec('SAVEPOINT one_row')
    try {
      const written = appendRow(row)
      db.exec('RELEASE one_row')
      return written
    } catch (error) {
      if (storeFailure(error).kind !== 'rejected') throw error
      db.exec('ROLLBACK TO one_row; RELEASE one_row')
      eventIds.rewind(nextIds[0])
      resendIds.rewind(nextIds[1])
      return { outcome: 'failed', reason: error instanceof Error ? error.message : String(error) }
    }
  }

  type AppendOne = (batch: SealedBatch) => Written[]

  function commit(batches: readonly AppendBatch[], append: AppendOne): Written[][] {
    hasPlaced = false
    let firstId = Number.POSITIVE_INFINITY
    try {
      const written = inTransaction(db, () => {
        if (!recent) filing.fileAll()
        eventIds.load()
        resendIds.load()
        firstId = eventIds.peek()
        if (firstId !== nextId) stored?.startAgain(firstId)
        nextId = firstId
        const nextResend = resendIds.peek()
        const written = batches.map((batch) => append({ ...batch, identities: seal(batch) }))
        if (hasPlaced) eventIds.save()
        if (resendIds.peek() !== nextResend) resendIds.save()
        return written
      })
      nextId = eventIds.peek()
      return written
    } catch (error) {
      if (recent) for (const { bytes } of batches) forgetFrom(firstId, bytes, recent)
      throw error
    }
  }

  const appendInOrder =
    (append: (row: AppendRow) => Written): AppendOne =>
    ({ bytes }) =>
      Array.from(unpackBatch(bytes), append)
  const appendRows = appendInOrder(appendRow)
  const appendEachAlone = appendInOrder(appendAlone)
  const appendFast: AppendOne = (batch) =>
    batch.isPlain && recent && recent.size < mostUnfiled ? appendPlain(batch, recent) : appendRows(batch)

  return (batches) => {
    try {
      return commit(batches, appendFast)
    } catch (error) {
      if (storeFailure(error).kind !== 'rejected') throw error
      return commit(batches, appendEachAlone)
    }
  }
}

/** These rows of a batch in one piece: nearly always all of them, or neighbours, which lie so already. */
function cut(bytes: Uint8Array, bounds: readonly number[], places: readonly number[]): Uint8Array {
  const [first, last] = [places[0]!, places.at(-1)!]
  if (last - first === places.length - 1) return bytes.subarray(bounds[first], bounds[last + 1])
  return Buffer.concat(places.map((place) => bytes.subarray(bounds[place], bounds[place + 1])))
}

/** What a transaction has added that gave out ids from this one on, and was rolled back. */
function forgetFrom(firstId: number, bytes: Uint8Array, recent: RecentKeys): void {
  for (const digest of digestsOf(bytes)) {
    const id = recent.find(digest)
    if (id >= firstId) recent.remove(digest, id)
  }
}

/** What was not in `dedupe` when the last writer ended. */
function remember(db: DatabaseSync, recent: RecentKeys): void {
  for (const { digest, id } of unsortedKeys(db)) recent.add(digest, id)
  for (const { firstId, bytes } of arrivedBatches(db)) {
    let id = firstId
    for (const digest of digestsOf(bytes)) recent.add(digest, id++)
  }
}

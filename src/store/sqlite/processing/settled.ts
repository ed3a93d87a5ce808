// Settled deliveries of a range of ids on SQLite, for replays: read in bounded steps, in key order, whatever tenants lie between.

import type { DatabaseSync } from 'node:sqlite'
import type { QueueName, SettledRange } from '../../contract/processing.ts'
import type { Turn } from '../threads/reader-scheduler.ts'
import { queueOf } from './processing.ts'

const KEY = 'event_id, company_id, account_id, subscription'
const SELECT = `SELECT ${KEY}, company_id = ? AND account_id = ? AND subscription = ? AND state IN ('done', 'dead') AS is_wanted
  FROM deliveries WHERE (${KEY}) > (?, ?, ?, ?) AND event_id <= ? ORDER BY ${KEY} LIMIT ? + 0`
const STEP = 1000

/** Null: no such subscription. */
export async function findSettled(
  db: DatabaseSync,
  name: QueueName,
  range: SettledRange,
  limit: number,
  turn: Turn,
): Promise<number[] | null> {
  const found: number[] = []
  const end = await walk(db, name, range, turn, (id) => found.push(id) < limit)
  return end && found
}

/** Null: no such subscription. */
export async function countSettled(
  db: DatabaseSync,
  name: QueueName,
  range: SettledRange,
  turn: Turn,
): Promise<number | null> {
  let count = 0
  const end = await walk(db, name, range, turn, () => {
    count += 1
    return true
  })
  return end && count
}

async function walk(
  db: DatabaseSync,
  name: QueueName,
  { fromId, toId }: SettledRange,
  turn: Turn,
  visit: (id: number) => boolean,
): Promise<true | null> {
  const queue = queueOf(db, name)
  if (!queue) return null
  const select = db.prepare(SELECT)
  for (let after = [fromId - 1, Number.MAX_SAFE_INTEGER, 0, 0]; ; await turn()) {
    const rows = select.all(...queue, ...after, toId, STEP)
    for (const row of rows) if (row.is_wanted === 1 && !visit(row.event_id as number)) return true
    const last = rows.at(-1)
    if (!last || rows.length < STEP) return true
    after = [last.event_id, last.company_id, last.account_id, last.subscription] as number[]
  }
}

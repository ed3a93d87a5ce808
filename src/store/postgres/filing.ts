// Filing: what has arrived gets its rows in the journal, in id order. Senders do not wait for it; the index does, and whoever copies.
// It is the work of whoever has the turn of the index, in that transaction: a message is always in one of the two places.

import type { Connection, Statement } from './connection.ts'
import { LOCKS } from './locks.ts'

const FILE: Statement = {
  name: 'intray_file',
  text: 'SELECT reached FROM intray.file_arrivals($1, $2, $3)',
}

/** Whoever has the turn and falls silent loses it after so long: where keys are late, others wait for what it files (docs/adr/0038). */
const MOST_SILENT_MS = 5000

/** Held to the end of the transaction, which waits no longer than this for any other lock either. */
export async function takeTurn(connection: Connection, waitMs: number): Promise<void> {
  const [group, lock] = LOCKS.indexer
  await connection.script(`SET LOCAL lock_timeout = ${waitMs};
SET LOCAL idle_in_transaction_session_timeout = ${MOST_SILENT_MS};
SELECT pg_advisory_xact_lock(${group}, ${lock})`)
}

/**
 * What has an id behind `after`, up to which all is filed, and up to `through`: about so many messages. Answers up to which id nothing
 * is to come any more, `through` at most. Behind it, what came later may have its row already.
 */
export async function fileSome(connection: Connection, after: number, through: number, most: number): Promise<number> {
  const [row] = await connection.query<{ reached: number }>(FILE, [after, through, most])
  return row!.reached
}

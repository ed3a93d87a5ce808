// Restore on PostgreSQL: pg_restore fills an empty database, the rows are checked there, and one last transaction puts the
// database in place. From the first step to that transaction the database has a mark, which keeps everybody else out: a restore
// that is killed leaves no database that a server would open, and the next restore starts over.

import { newUuid } from '../../../runtime/id.ts'
import type { Restore } from '../../contract/backup.ts'
import { StoreRefused } from '../../contract/failure.ts'
import { parseAddress, programAddress, restoreUrl } from '../connection/address.ts'
import type { Connection } from '../connection/connection.ts'
import { LOCKS } from '../connection/locks.ts'
import { Pool } from '../connection/pool.ts'
import { readSchema } from '../schema.ts'
import { openPostgresCopy } from '../store.ts'
import { majorOf, type ProgramCall, runProgram, shellLine } from './program.ts'
import { addGap } from './recovery.ts'
import { dropMark, readMark, removeUnfinished, RESTORE_APPLICATION, setMark } from './restore-mark.ts'

/** They belong to the servers and browsers of the old database. */
const FORGET = 'DELETE FROM intray.nodes; DELETE FROM intray.sessions; DELETE FROM intray.sign_in_links'

/** `file`: the backup that will be loaded. */
export async function openPostgresRestore(url: string, file: string): Promise<Restore> {
  const id = newUuid()
  const loadedUrl = restoreUrl(url, id)
  const pool = new Pool(parseAddress(loadedUrl))
  let unlock: (() => Promise<void>) | null = null
  return {
    loadedUrl,
    async load() {
      const call = restoreCall(url, file)
      if ((await majorOf('pg_restore')) === null) {
        throw new StoreRefused(
          'pg_restore is not on the PATH. Install the client programs of PostgreSQL, or run both of these where they are:\n' +
            `${shellLine(call)}\n./intray epoch`,
        )
      }
      unlock = await lockRestores(pool)
      await whileNoneMigrates(pool, (connection) => begin(connection, id))
      await runProgram(call)
      const rows = await openPostgresCopy(loadedUrl, true)
      // A backup of a frozen database is not part of that copy.
      await rows.release()
      return { structure: async () => [], rows, close: () => rows.close() }
    },
    finish: (now) =>
      whileNoneMigrates(pool, async (connection) => {
        if ((await readMark(connection)) !== id) {
          throw new StoreRefused('Another restore has taken this one over. This one was given up.')
        }
        await connection.script(FORGET)
        await dropMark(connection)
        return addGap(connection, now)
      }),
    async discard() {
      try {
        if (unlock === null) return
        await whileNoneMigrates(pool, async (connection) => {
          if ((await readMark(connection)) === id) await removeUnfinished(connection)
        })
      } finally {
        await unlock?.()
        await pool.close()
      }
    },
  }
}

function restoreCall(url: string, file: string): ProgramCall {
  const { uri, password } = programAddress(url, { application_name: RESTORE_APPLICATION })
  const args = ['--no-owner', '--no-privileges', '--single-transaction', '--exit-on-error', `--dbname=${uri}`, file]
  return { name: 'pg_restore', args, password }
}

async function begin(connection: Connection, id: string): Promise<void> {
  if ((await readMark(connection)) !== null) await removeUnfinished(connection)
  if (!(await readSchema(connection)).isNew) {
    throw new StoreRefused(
      'The database of --to holds Intray data, and a restore overwrites nothing. Give an empty database.',
    )
  }
  await setMark(connection, id)
}

/** In one transaction. Who makes the schema looks for the mark under the same lock. */
function whileNoneMigrates<T>(pool: Pool, work: (connection: Connection) => Promise<T>): Promise<T> {
  return pool.transaction(async (connection) => {
    await connection.query('SELECT pg_advisory_xact_lock($1, $2)', LOCKS.migrations)
    return work(connection)
  })
}

/** One restore at a time. The lock is that of a transaction that stays open, which ends with this process, however it ends. */
async function lockRestores(pool: Pool): Promise<() => Promise<void>> {
  const locked = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<void>()
  const transaction = pool.transaction(async (connection) => {
    await connection.script('SET LOCAL idle_in_transaction_session_timeout = 0')
    const [row] = await connection.query<{ taken: boolean }>(
      'SELECT pg_try_advisory_xact_lock($1, $2) AS taken',
      LOCKS.restore,
    )
    if (!row!.taken) throw new StoreRefused('Another restore into this database is running. Wait until it has ended.')
    locked.resolve()
    await ended.promise
  })
  transaction.catch(locked.reject)
  await locked.promise
  return async () => {
    ended.resolve()
    // If the connection is gone, so is the lock.
    await transaction.catch(() => {})
  }
}

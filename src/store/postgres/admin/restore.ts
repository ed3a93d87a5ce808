// Restore on PostgreSQL: pg_restore fills an empty database in one transaction, and the rows are checked there.

import type { Restore } from '../../contract/backup.ts'
import { StoreRefused } from '../../contract/failure.ts'
import { parseAddress, programAddress } from '../connection/address.ts'
import { Pool } from '../connection/pool.ts'
import { readSchema } from '../schema.ts'
import { openPostgresCopy } from '../store.ts'
import { majorOf, type ProgramCall, runProgram, shellLine } from './program.ts'
import { addGap } from './recovery.ts'

/** They belong to the servers and browsers of the old database. */
const FORGET = 'DELETE FROM intray.nodes; DELETE FROM intray.sessions; DELETE FROM intray.sign_in_links'
const REMOVE = 'DROP SCHEMA intray CASCADE'

/** `file`: the backup that will be loaded. */
export async function openPostgresRestore(url: string, file: string): Promise<Restore> {
  const { uri, password } = programAddress(url)
  const pool = new Pool(parseAddress(url))
  let isLoaded = false
  return {
    loadedUrl: url,
    async load() {
      if (!(await pool.use(readSchema)).isNew) {
        throw new StoreRefused(
          'The database of --to holds Intray data, and a restore overwrites nothing. Give an empty database.',
        )
      }
      const args = ['--no-owner', '--no-privileges', '--single-transaction', '--exit-on-error', `--dbname=${uri}`, file]
      const call: ProgramCall = { name: 'pg_restore', args, password }
      if ((await majorOf('pg_restore')) === null) {
        throw new StoreRefused(
          'pg_restore is not on the PATH. Install the client programs of PostgreSQL, or run both of these where they are:\n' +
            `${shellLine(call)}\n./intray epoch`,
        )
      }
      await runProgram(call)
      isLoaded = true
      const rows = await openPostgresCopy(url, true)
      return { structure: async () => [], rows, close: () => rows.close() }
    },
    async finish(now) {
      const gap = await pool.transaction(async (connection) => {
        await connection.script(FORGET)
        return addGap(connection, now)
      })
      isLoaded = false
      return gap
    },
    async discard() {
      // The schema did not exist before `load`.
      if (isLoaded) await pool.use((connection) => connection.query(REMOVE))
      await pool.close()
    },
  }
}

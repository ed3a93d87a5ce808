// Backups on PostgreSQL: pg_dump writes one snapshot of the schema in its custom format, while servers write on.

import type { BackupFile, BackupSource } from '../../contract/backup.ts'
import { StoreRefused } from '../../contract/failure.ts'
import { parseAddress, programAddress } from '../connection/address.ts'
import { Pool } from '../connection/pool.ts'
import { readSchema } from '../schema.ts'
import { majorOf, type ProgramCall, runProgram, shellLine } from './program.ts'

const NOTE = `INSERT INTO intray.meta (key, value) VALUES ('last_backup', convert_to($1, 'UTF8'))
  ON CONFLICT (key) DO UPDATE SET value = excluded.value`

export async function openPostgresBackup(url: string): Promise<BackupSource> {
  const pool = new Pool(parseAddress(url))
  return {
    extension: '.dump',
    async write(file, say) {
      const server = await pool.use(async (connection) => {
        if ((await readSchema(connection)).isNew)
          throw new StoreRefused('The database has no Intray data. Check its URL.')
        return connection.server
      })
      const call = dumpCall(url, file)
      const serverMajor = Math.floor(server.version_number / 10_000)
      const major = await majorOf('pg_dump')
      if (major === null || major < serverMajor) {
        const found = major === null ? 'pg_dump is not on the PATH' : `pg_dump ${major} is older than the server`
        throw new StoreRefused(
          `${found}. Install the client programs of PostgreSQL ${serverMajor} or newer, or run this where they are:\n` +
            shellLine(dumpCall(url, file.replace(/\.part$/, ''))),
        )
      }
      say('pg_dump is running')
      await runProgram(call)
      return {}
    },
    note: (begunAt) =>
      pool.use(async (connection) => {
        await connection.query(NOTE, [String(begunAt)])
      }),
    close: () => pool.close(),
  }
}

function dumpCall(url: string, file: string): ProgramCall {
  const { uri, password } = programAddress(url)
  const args = [
    '--format=custom',
    '--no-owner',
    '--no-privileges',
    '--schema=intray',
    `--file=${file}`,
    `--dbname=${uri}`,
  ]
  return { name: 'pg_dump', args, password }
}

/** The rows of a dump are readable after a restore only; reading all of it finds what is cut off or cannot be decompressed. */
export async function openPostgresBackupFile(file: string): Promise<BackupFile> {
  if ((await majorOf('pg_restore')) === null) {
    throw new StoreRefused('pg_restore is not on the PATH. Install the client programs of PostgreSQL.')
  }
  return {
    structure: async () => {
      try {
        await runProgram({ name: 'pg_restore', args: ['--file=/dev/null', file], password: null })
        return []
      } catch (error) {
        return [(error as Error).message]
      }
    },
    rows: null,
    close: async () => {},
  }
}

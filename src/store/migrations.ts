// Migrations: numbered .sql files, applied once, in order, under the driver's lock.
// The checksum of each file is recorded. A database made by other files is refused, and so is one that is ahead of the
// code: an older version that writes into a newer schema loses data.

import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { StoreRefused } from './contract/failure.ts'

export interface Migration {
  readonly version: number
  readonly name: string
  readonly checksum: string
  readonly sql: string
}

export interface AppliedMigration {
  readonly version: number
  readonly name: string
  readonly checksum: string
}

/** Reads `0001_name.sql`, `0002_name.sql`, …; fails if a number is missing. */
export function readMigrations(folder: URL): Migration[] {
  const files = readdirSync(folder)
    .filter((file) => file.endsWith('.sql'))
    .sort()
  return files.map((file, index) => {
    const version = Number(file.slice(0, 4))
    if (version !== index + 1) throw new Error(`migration ${file}: expected number ${index + 1}`)
    const sql = readFileSync(new URL(file, folder), 'utf8')
    return { version, name: file.slice(5, -4), checksum: createHash('sha256').update(sql).digest('hex'), sql }
  })
}

/** The migrations still to apply; refuses a database that these migrations did not create. */
export function pendingMigrations(known: readonly Migration[], applied: readonly AppliedMigration[]): Migration[] {
  const newest = applied.at(-1)?.version ?? 0
  for (const [index, migration] of known.slice(0, newest).entries()) {
    const row = applied[index]
    if (row?.version !== migration.version) {
      throw new StoreRefused(
        `The database lacks migration ${migration.version}, so its schema is damaged. Restore it from a backup.`,
      )
    }
    if (migration.checksum !== row.checksum) {
      throw new StoreRefused(
        `The database was made by another commit of Intray: its schema ${row.version} (${row.name}) is not the one of this version. ` +
          'Databases of commits before 0.2.0 are not migrated: start the commit that made it, or use a new database.',
      )
    }
  }
  if (newest > known.length) {
    throw new StoreRefused(
      `The database has schema version ${newest}, newer than the ${known.length} this version of Intray knows. ` +
        'Start the version that made it, or a newer one.',
    )
  }
  return known.slice(applied.length)
}

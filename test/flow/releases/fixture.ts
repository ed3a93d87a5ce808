// The databases of releases, as files of the repository: made once, by `make.ts`, with the package of the release.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { gunzipSync, gzipSync } from 'node:zlib'
import { newPostgresDatabase, withClient } from '../../support/postgres/databases.ts'
import { tempFolder } from '../../support/temp.ts'
import type { Tokens } from './fill.ts'

const FOLDER = fileURLToPath(new URL('./', import.meta.url))

/** Those that have databases: every release that changed the schema. */
export const RELEASES = readdirSync(FOLDER).filter((name) => /^\d/.test(name))

export const DATABASES = { sqlite: 'sqlite.db.gz', postgres: 'postgres.sql.gz' } as const
export type DatabaseName = keyof typeof DATABASES

/** What the release itself said of its database. */
export interface Said {
  readonly tokens: Tokens
  readonly answers: Readonly<Record<string, unknown>>
  readonly lists: Readonly<Record<string, unknown>>
}

export function saidBy(release: string, database: DatabaseName): Said {
  return JSON.parse(gunzipSync(readFileSync(join(FOLDER, release, `${database}.json.gz`))).toString()) as Said
}

/** The URL of a copy. */
export async function databaseOf(release: string, database: DatabaseName): Promise<string> {
  const content = gunzipSync(readFileSync(join(FOLDER, release, DATABASES[database])))
  if (database === 'sqlite') {
    const path = join(tempFolder('release'), 'intray.db')
    writeFileSync(path, content, { mode: 0o600 })
    return `sqlite:${path}`
  }
  const url = await newPostgresDatabase()
  await withClient(url, (client) => client.query(content.toString()))
  return url
}

/** `content`: the database's file, or the SQL that makes it. */
export function keep(release: string, database: DatabaseName, content: Uint8Array, said: Said): void {
  mkdirSync(join(FOLDER, release), { recursive: true })
  writeFileSync(join(FOLDER, release, DATABASES[database]), gzipSync(content, { level: 9 }))
  writeFileSync(join(FOLDER, release, `${database}.json.gz`), gzipSync(JSON.stringify(said), { level: 9 }))
}

/** What is in the file, without what SQLite keeps beside it. */
export function wholeFile(path: string): Uint8Array {
  const db = new DatabaseSync(path)
  db.exec('PRAGMA wal_checkpoint(TRUNCATE); VACUUM')
  db.close()
  return readFileSync(path)
}

// The databases that the conformance and API suites run on. A suite is written once and run for each driver.

import { join } from 'node:path'
import { newMigratedDatabase, newPostgresDatabase } from './postgres/databases.ts'
import { tempFolder } from './temp.ts'

export interface Driver {
  readonly name: string
  /** The URL of a database that did not exist before. */
  newDatabase(): Promise<string>
  /** One that a store may have been opened on before, and nothing was done with: what most tests start from. */
  readyDatabase(): Promise<string>
}

const newSqliteDatabase = async (): Promise<string> => `sqlite:${join(tempFolder('sqlite'), 'intray.db')}`

export const drivers: readonly Driver[] = [
  { name: 'sqlite', newDatabase: newSqliteDatabase, readyDatabase: newSqliteDatabase },
  { name: 'postgres', newDatabase: newPostgresDatabase, readyDatabase: newMigratedDatabase },
]

/** For what is decided before the store is asked: one of them shows it. */
export const anyDriver: readonly Driver[] = drivers.slice(0, 1)

/** PostgreSQL on databases that the test makes or has made itself. */
export function postgresOn(newDatabase: () => Promise<string>): Driver {
  return { name: 'postgres', newDatabase, readyDatabase: newDatabase }
}

// The databases that the conformance and API suites run on. A suite is written once and run for each driver.

import { join } from 'node:path'
import { newPostgresDatabase } from './postgres/databases.ts'
import { tempFolder } from './temp.ts'

export interface Driver {
  readonly name: string
  /** The URL of a database that did not exist before. */
  newDatabase(): Promise<string>
}

export const drivers: readonly Driver[] = [
  { name: 'sqlite', newDatabase: async () => `sqlite:${join(tempFolder('sqlite'), 'intray.db')}` },
  { name: 'postgres', newDatabase: newPostgresDatabase },
]

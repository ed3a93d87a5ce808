// The programs of PostgreSQL, for test files that run pg_dump: it must fit its server, and npm brings the server alone. So the
// server of a file that imports this is Debian's, which comes with them.

import { postgresBin } from '../../../prove/debian.ts'
import { TEMPLATE_VARIABLE } from './server.ts'

/** Their folder; null if they are not installed. */
export const programs = process.env.TEST_POSTGRES_BIN ?? postgresBin()
if (programs !== null) {
  process.env.TEST_POSTGRES_BIN = programs
  delete process.env[TEMPLATE_VARIABLE]
}

export const WITHOUT_PROGRAMS = 'there is no PostgreSQL from Debian: apt-get install postgresql'

/** Finds them before others of their name. */
export const withPrograms = { PATH: `${programs ?? '/nonexistent'}:${process.env.PATH}` }

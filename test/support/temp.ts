// A folder for one test, inside the run's own.

import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export function tempFolder(name = 'case'): string {
  return mkdtempSync(join(process.env.TEST_ROOT ?? tmpdir(), `${name}-`))
}

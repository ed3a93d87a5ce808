// Python as Debian packages it.

import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'

/** Debian's own first: another one on the path may lack SQLite. */
export const PYTHON = existsSync('/usr/bin/python3') ? '/usr/bin/python3' : 'python3'

export function hasPython(): boolean {
  const check = 'import sqlite3, ssl, sys; sys.exit(sys.version_info < (3, 10))'
  return spawnSync(PYTHON, ['-c', check]).status === 0
}

/** For `skip` of a test. */
export function missingPython(): string | false {
  return !hasPython() && 'not run: Python 3.10 or newer is not installed'
}

// A real MariaDB for one test file: data in a temporary folder, a Unix socket and no port, gone with the process.

import { execFile } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { hasProgram, isRoot } from '../../prove/debian.ts'
import { startBackground } from './background.ts'
import { tempFolder } from './temp.ts'

const run = promisify(execFile)

// Tests kill PHP, never the database: nothing depends on what it syncs.
const QUICK = [
  '--innodb-flush-log-at-trx-commit=0',
  '--innodb-doublewrite=0',
  '--innodb-log-file-size=8M',
  '--innodb-buffer-pool-size=32M',
  '--skip-log-bin',
]

export const MARIADB_PACKAGES = ['mariadb-server-core', 'mariadb-client-core'] as const

export function hasMariadb(): boolean {
  return ['mariadbd', 'mariadb-install-db', 'mariadb'].every(hasProgram)
}

export interface Mariadb {
  readonly socket: string
  readonly user: string
  createDatabase(name: string): Promise<void>
  stop(): Promise<void>
}

export async function startMariadb(folder = tempFolder('mariadb')): Promise<Mariadb> {
  const data = join(folder, 'data')
  // The path of a socket has at most 107 characters.
  const socket = join(folder, 's')
  mkdirSync(data)
  const user = isRoot ? ['--user=root'] : []
  await run('mariadb-install-db', [
    '--no-defaults',
    `--datadir=${data}`,
    '--auth-root-authentication-method=normal',
    '--skip-test-db',
    ...QUICK,
    ...user,
  ])
  const options = ['--no-defaults', `--datadir=${data}`, `--socket=${socket}`, '--skip-networking', ...QUICK, ...user]
  const server = await startBackground([isRoot ? '/usr/sbin/mariadbd' : 'mariadbd', ...options], {
    ready: /ready for connections/,
    signal: 'KILL',
  })
  return {
    socket,
    user: 'root',
    createDatabase: async (name) => {
      await run('mariadb', ['--no-defaults', `--socket=${socket}`, '--user=root', '-e', `CREATE DATABASE ${name}`])
    },
    stop: () => server.stop(),
  }
}

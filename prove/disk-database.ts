// A database on a given disk, as strong as the service has it or weaker by one setting, for a control. PostgreSQL runs on
// that disk itself; SQLite runs in the service.

import { chmodSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createDatabase } from '../test/support/postgres/databases.ts'
import { createCluster, type PostgresServer, startPostgres } from '../test/support/postgres/server.ts'
import type { ProofContext, StoreName } from './proof.ts'

const WEAKEN = fileURLToPath(new URL('./weaken.ts', import.meta.url))

export interface Weakness {
  readonly name: string
  readonly about: string
  /** For the service. */
  readonly env: Readonly<Record<string, string>>
  /** For PostgreSQL. */
  readonly settings: Readonly<Record<string, string>>
}

function synchronous(value: 'NORMAL' | 'OFF'): Weakness {
  return {
    name: value.toLowerCase(),
    about: `the service with PRAGMA synchronous=${value}`,
    env: { NODE_OPTIONS: `--import ${WEAKEN}`, PROVE_SYNCHRONOUS: value },
    settings: {},
  }
}

export const WEAKER: Readonly<Record<StoreName, readonly Weakness[]>> = {
  sqlite: [synchronous('NORMAL'), synchronous('OFF')],
  postgres: [{ name: 'fsync-off', about: 'PostgreSQL with fsync=off', env: {}, settings: { fsync: 'off' } }],
}

export interface DiskDatabase {
  readonly url: string
  readonly env: Readonly<Record<string, string>>
  start(): Promise<void>
  /** At once, without a shutdown. */
  kill(): Promise<void>
}

export async function databaseOn(
  disk: string,
  context: ProofContext,
  weakness: Weakness | null,
): Promise<DiskDatabase> {
  const env = weakness?.env ?? {}
  if (context.store === 'sqlite') {
    return { url: `sqlite:${join(disk, 'intray.db')}`, env, start: async () => {}, kill: async () => {} }
  }
  chmodSync(context.folder, 0o711)
  chmodSync(disk, 0o711)
  const home = join(disk, 'postgres')
  mkdirSync(home)
  await createCluster(home)
  const settings = { fsync: 'on', synchronous_commit: 'on', full_page_writes: 'on', ...weakness?.settings }
  let server: PostgresServer | null = await startPostgres(home, settings)
  const { port } = server
  context.onCleanup(() => server?.crash())
  return {
    url: await createDatabase(server.url('postgres')),
    env,
    start: async () => {
      server ??= await startPostgres(home, settings, port)
    },
    kill: async () => {
      await server?.crash()
      server = null
    },
  }
}

// A primary and its standby, for tests of failover. The standby is made from a cold copy of the primary's cluster.
//
// Neither syncs to the disk: what is killed here are processes, which lose nothing that they handed to the system. What is
// under test is whether an answer waits for the standby.

import { connect, withClient } from './databases.ts'
import { copyCluster, makeStandby, newCluster, type PostgresServer, type Settings, startPostgres } from './server.ts'
import { until } from '../until.ts'

const REPLICATED: Settings = { fsync: 'off', wal_level: 'replica' }
const STANDBY_NAME = 's1'

export interface Pair {
  readonly primary: PostgresServer
  readonly standby: PostgresServer
  /** A URL that lists both servers, the primary first unless told otherwise. */
  url(database: string, standbyFirst?: boolean): string
}

/** Starts both and waits until the standby follows. Synchronous: a commit on the primary waits for the standby. */
export async function startPair({ synchronous }: { readonly synchronous: boolean }): Promise<Pair> {
  const folder = await newCluster()
  const copy = await copyCluster(folder)
  const primary = await startPostgres(folder, REPLICATED)
  makeStandby(copy, `host=127.0.0.1 port=${primary.port} user=intray application_name=${STANDBY_NAME}`)
  const standby = await startPostgres(copy, REPLICATED)
  // Set on the primary alone, so that the standby takes writes once it is promoted: no operator has to change it then.
  if (synchronous) await setAndReload(primary, 'synchronous_standby_names', `FIRST 1 (${STANDBY_NAME})`)
  await untilFollowing(primary, synchronous ? 'sync' : 'async')
  return {
    primary,
    standby,
    url: (database, standbyFirst = false) => {
      const hosts = [primary, standby].map(({ port }) => `127.0.0.1:${port}`)
      return `postgres://intray@${(standbyFirst ? hosts.toReversed() : hosts).join(',')}/${database}`
    },
  }
}

/** From now on nothing reaches the standby: a commit that waits for it waits on. */
export async function cutOff({ primary, standby }: Pair): Promise<void> {
  await setAndReload(standby, 'primary_conninfo', '')
  await untilFollowing(primary, null)
}

/** Makes the standby a primary; its old one must be dead. */
export async function promote({ standby }: Pair): Promise<void> {
  await withClient(standby.url('postgres'), async (client) => {
    await client.query('SELECT pg_promote()')
    await until('the standby takes writes', async () => {
      const { rows } = await client.query('SELECT pg_is_in_recovery() AS waiting')
      return !rows[0].waiting
    })
  })
}

async function setAndReload(server: PostgresServer, name: string, value: string): Promise<void> {
  await withClient(server.url('postgres'), async (client) => {
    await client.query(`ALTER SYSTEM SET ${name} = '${value}'`)
    await client.query('SELECT pg_reload_conf()')
  })
}

async function untilFollowing(primary: PostgresServer, state: 'sync' | 'async' | null): Promise<void> {
  const client = await connect(primary.url('postgres'))
  try {
    await until(`the standby is ${state ?? 'cut off'}`, async () => {
      const { rows } = await client.query(`SELECT sync_state FROM pg_stat_replication WHERE state = 'streaming'`)
      return (rows[0]?.sync_state ?? null) === state
    })
  } finally {
    await client.end()
  }
}

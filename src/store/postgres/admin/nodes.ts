// The servers of this database. Each renews its row every second; one that was killed, or cut off from the database,
// stops counting after a few seconds. Times are the database's, since the clocks of nodes may differ.

import type { NodeState, NodeStore } from '../../contract/nodes.ts'
import type { Connection, Statement } from '../connection/connection.ts'
import type { Pool } from '../connection/pool.ts'

const BEAT_EVERY_MS = 1000
const GONE_AFTER_S = 4
/** The row of a node without a heartbeat for this long is deleted. */
const FORGOTTEN_AFTER_S = 3600

/** A heartbeat lost in a power cut does no harm: it is committed without a sync. */
const REPORT: Statement = {
  name: 'intray_report_node',
  text: `INSERT INTO intray.nodes (node_id, token_generation, seen_at)
  SELECT $1, $2, clock_timestamp() FROM set_config('synchronous_commit', 'off', true)
  ON CONFLICT (node_id) DO UPDATE SET token_generation = excluded.token_generation, seen_at = excluded.seen_at`,
}
const FORGET = `DELETE FROM intray.nodes WHERE seen_at < clock_timestamp() - interval '${FORGOTTEN_AFTER_S} seconds'`
const SELECT_LIVE: Statement = {
  name: 'intray_live_nodes',
  text: `SELECT node_id, token_generation FROM intray.nodes
  WHERE seen_at > clock_timestamp() - interval '${GONE_AFTER_S} seconds' ORDER BY node_id`,
}

export interface Nodes extends NodeStore {
  /** Stops the heartbeat. */
  stop(): void
}

export function createNodes(pool: Pool): Nodes {
  const own = new Map<string, NodeState>()
  let beating: NodeJS.Timeout | null = null
  let reporting: Promise<void> | null = null

  const write = ({ nodeId, tokenGeneration }: NodeState): Promise<void> =>
    pool.use(async (connection) => {
      await connection.query(REPORT, [nodeId, tokenGeneration])
    })
  const beat = async (): Promise<void> => {
    try {
      for (const state of own.values()) await write(state)
    } catch {
      // A node that cannot reach the database is not counted as live, rightly: it cannot serve.
    }
  }

  return {
    report: async (state) => {
      // Set first: a heartbeat in between would write the old state again.
      own.set(state.nodeId, state)
      await write(state)
      await pool.use((connection) => connection.query(FORGET))
      beating ??= setInterval(() => {
        reporting ??= beat().finally(() => {
          reporting = null
        })
      }, BEAT_EVERY_MS).unref()
    },
    remove: async (nodeId) => {
      own.delete(nodeId)
      // A report on another connection may reach the server after the DELETE, and would insert the row again.
      await reporting
      await pool.use((connection) => connection.query('DELETE FROM intray.nodes WHERE node_id = $1', [nodeId]))
    },
    live: () => pool.use(readLiveNodes),
    stop: () => {
      if (beating) clearInterval(beating)
    },
  }
}

export async function readLiveNodes(connection: Connection): Promise<NodeState[]> {
  const rows = await connection.query<{ node_id: string; token_generation: number }>(SELECT_LIVE)
  return rows.map((row) => ({ nodeId: row.node_id, tokenGeneration: row.token_generation }))
}

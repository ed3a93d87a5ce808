// The servers on this database. Each says again every second that it is there; one that was killed, or cut off from the
// database, is no longer counted after a few. By the database's clock: nodes may disagree about the time.

import type { NodeState, NodeStore } from '../../contract/nodes.ts'
import type { Connection, Statement } from '../connection/connection.ts'
import type { Pool } from '../connection/pool.ts'

const BEAT_EVERY_MS = 1000
const GONE_AFTER_S = 4
/** So long after its last sign the row itself goes. */
const FORGOTTEN_AFTER_S = 3600

/** A sign of life that is lost with the power is no loss: it costs no sync. */
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
  /** No further signs of life. */
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
      // Who cannot reach the database is not counted as alive, and that is right: it serves nobody.
    }
  }

  return {
    report: async (state) => {
      // First: a beat in between would say again what was true before.
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

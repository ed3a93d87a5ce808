// The one server of a SQLite database. Its lock tells whether it is alive; the system frees the lock when the process
// dies.

import type { DatabaseSync } from 'node:sqlite'
import type { NodeState } from '../../contract/nodes.ts'

const UPSERT = `INSERT INTO nodes (node_id, token_generation) VALUES (?, ?)
  ON CONFLICT (node_id) DO UPDATE SET token_generation = excluded.token_generation`
const SELECT = 'SELECT node_id, token_generation FROM nodes'

export function prepareNodeWrites(db: DatabaseSync) {
  return {
    report: ({ nodeId, tokenGeneration }: NodeState): void => {
      db.prepare(UPSERT).run(nodeId, tokenGeneration)
    },
    remove: (nodeId: string): void => {
      db.prepare('DELETE FROM nodes WHERE node_id = ?').run(nodeId)
    },
    /** A starting server is the only one: every recorded node was killed. */
    forgetAll: (): void => {
      db.exec('DELETE FROM nodes')
    },
  }
}

export function readNodes(db: DatabaseSync): NodeState[] {
  return db
    .prepare(SELECT)
    .all()
    .map((row) => ({ nodeId: row.node_id as string, tokenGeneration: row.token_generation as number }))
}

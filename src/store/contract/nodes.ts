// The running servers of this database, and which token changes each has applied.

export interface NodeState {
  readonly nodeId: string
  readonly tokenGeneration: number
}

export interface NodeStore {
  /** Reports that this node is alive and has applied this generation of tokens. */
  report(state: NodeState): Promise<void>
  /** Signs the node off. Ends the store's own repeated reports first, so that none of them inserts the node again. */
  remove(nodeId: string): Promise<void>
  /** The live nodes. A killed server is not among them; on a store with several servers, after at most 5 seconds. */
  live(): Promise<NodeState[]>
}

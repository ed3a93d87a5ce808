// The running servers on this database, and how far each has followed the changes of tokens.

export interface NodeState {
  readonly nodeId: string
  readonly tokenGeneration: number
}

export interface NodeStore {
  /** Says that this node is alive and has put this generation of tokens into force. */
  report(state: NodeState): Promise<void>
  /** Signs the node off. Reports that the store repeats by itself end first: none of them puts the node back. */
  remove(nodeId: string): Promise<void>
  /** Those that are alive. A server that was killed is not among them; where several run, within 5 seconds. */
  live(): Promise<NodeState[]>
}

// The advisory locks of this driver, all held for one transaction only: they work behind a pooler that hands a session from
// transaction to transaction, and whoever dies loses them. The first number says that they are ours.

const INTRAY = 0x494e5452

export const LOCKS = {
  /** One node migrates. */
  migrations: [INTRAY, 1],
  /** Changes of tokens happen one after the other, so that generations are in the order of commits. */
  tokens: [INTRAY, 2],
  /** Refusals are trimmed by one node at a time. */
  refusals: [INTRAY, 3],
  /** The indexer is one runner among all nodes. */
  indexer: [INTRAY, 4],
  /** One copy writes into the database. */
  copy: [INTRAY, 9],
  /** Subscriptions are made one after the other. */
  subscriptions: [INTRAY, 5],
  /** Operators are changed one after the other. */
  operators: [INTRAY, 12],
} as const satisfies Record<string, readonly [number, number]>

// Advisory locks of this driver. All are held for one transaction: they work behind a pooler that assigns a session per
// transaction, and end with the connection. The first number marks them as ours.

const INTRAY = 0x494e5452

export const LOCKS = {
  /** One node migrates. */
  migrations: [INTRAY, 1],
  /** Token changes run one after the other, so that generation order is commit order. */
  tokens: [INTRAY, 2],
  /** One node at a time deletes old refusals. */
  refusals: [INTRAY, 3],
  /** One node at a time runs the indexer. */
  indexer: [INTRAY, 4],
  /** One restore at a time fills the database. */
  restore: [INTRAY, 7],
  /** One copy at a time writes into the database. */
  copy: [INTRAY, 9],
  /** Subscriptions are created one after the other. */
  subscriptions: [INTRAY, 5],
  /** Endpoint changes run one after the other, so that generation order is commit order. */
  endpoints: [INTRAY, 34],
  /** Operators are changed one after the other. */
  operators: [INTRAY, 12],
  /** Erasures run one after the other, so that the ids of their log are in commit order. */
  erasures: [INTRAY, 31],
  /** One node at a time removes what is too old. */
  retention: [INTRAY, 32],
} as const satisfies Record<string, readonly [number, number]>

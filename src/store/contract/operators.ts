// Operators, their sessions, the links that sign one in once, and the log of what they did. All of it belongs to the
// installation and to no tenant.
//
// Promises
// - Names are unique, compared exactly. Operators are never deleted, so that the log can name them.
// - Of a session and of a link only the SHA-256 is kept: nobody who reads the database can sign in with it.
// - A new password, and being disabled, end every session and every link of the operator in the same transaction.
// - A link works once: of several that try at the same time one gets the operator.
// - What is expired is never found, whether it was cleared away yet or not.

import type { AuditEntry, OperatorRecord } from '../../model/operator.ts'

export type NewOperator = Omit<OperatorRecord, 'disabledAt'>

export interface SessionRecord {
  readonly hash: Uint8Array
  readonly operatorId: string
  readonly createdAt: number
  readonly expiresAt: number
  /** When it was last used, give or take. */
  readonly seenAt: number
}

export interface SignInLink {
  readonly hash: Uint8Array
  readonly operatorId: string
  readonly expiresAt: number
}

export interface OperatorStore {
  /** Fails with `rejected` if the name exists. */
  create(operator: NewOperator): Promise<void>
  /** Only if there is no operator at all; false if there is one. Of several nodes that try at once one succeeds. */
  createFirst(operator: NewOperator): Promise<boolean>
  findByName(name: string): Promise<OperatorRecord | null>
  /** By name. */
  list(): Promise<OperatorRecord[]>
  /** Null when there is no such operator. */
  setPassword(name: string, password: string): Promise<OperatorRecord | null>
  setDisabled(name: string, disabledAt: number | null): Promise<OperatorRecord | null>

  /**
   * An operator has at most `maxSessions`: the oldest make room. False, and nothing done, if the operator was disabled or given
   * another password than this one since it was looked at.
   */
  openSession(session: SessionRecord, maxSessions: number, password?: string | null): Promise<boolean>
  /** Null for one that is over, or whose operator is disabled. */
  findSession(
    hash: Uint8Array,
    now: number,
  ): Promise<{ readonly session: SessionRecord; readonly operator: OperatorRecord } | null>
  touchSession(hash: Uint8Array, seenAt: number): Promise<void>
  closeSession(hash: Uint8Array): Promise<void>
  closeSessions(operatorId: string): Promise<void>

  /** A new link takes the place of the one before. */
  addLink(link: SignInLink): Promise<void>
  /** The operator, once. Null for a link that is unknown, used or expired, or whose operator is disabled. */
  useLink(hash: Uint8Array, now: number): Promise<OperatorRecord | null>

  addAudit(entry: AuditEntry): Promise<void>
  /** Newest first, below the given id (null: from the newest). */
  listAudit(beforeId: string | null, limit: number): Promise<AuditEntry[]>
  /** Clears away sessions and links that have expired, and what is in the log from before the given time. */
  prune(now: number, auditBefore: number): Promise<void>
}

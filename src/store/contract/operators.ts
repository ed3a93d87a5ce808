// Operators, their sessions, their one-time sign-in links, and the audit log. All of it belongs to the installation,
// not to a tenant.
//
// Promises
// - Names are unique, compared exactly. The audit log keeps the name of an operator that was removed.
// - Of sessions and links only the SHA-256 is stored: a reader of the database cannot sign in with it.
// - A new password, a new role, disabling and removal end every session and every link of the operator in the same transaction.
// - The last enabled admin stays one, unless the caller says otherwise; of two that are removed at once, one stays.
// - A link works once: of several concurrent attempts one succeeds.
// - Expired rows are never found, deleted yet or not.

import type { AuditEntry, OperatorRecord, OperatorRole } from '../../model/operator.ts'

export type NewOperator = Omit<OperatorRecord, 'disabledAt'>

export interface SessionRecord {
  readonly hash: Uint8Array
  readonly operatorId: string
  readonly createdAt: number
  readonly expiresAt: number
  /** Approximate time of the last use. */
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
  /** Only if there is no operator yet; returns false otherwise. Of several nodes that try at once one succeeds. */
  createFirst(operator: NewOperator): Promise<boolean>
  findByName(name: string): Promise<OperatorRecord | null>
  /** Sorted by name. */
  list(): Promise<OperatorRecord[]>
  /** Null when there is no such operator. */
  setPassword(name: string, password: string): Promise<OperatorRecord | null>
  setDisabled(name: string, disabledAt: number | null): Promise<OperatorRecord | null>
  /** Changes nothing and returns 'last_admin' if no enabled admin would be left, unless `evenLastAdmin`. */
  setRole(name: string, role: OperatorRole, evenLastAdmin: boolean): Promise<OperatorRecord | 'last_admin' | null>
  /** Like setRole. Returns the operator as it was. */
  remove(name: string, evenLastAdmin: boolean): Promise<OperatorRecord | 'last_admin' | null>

  /**
   * An operator has at most `maxSessions`: the oldest are deleted. Returns false and changes nothing if the operator
   * was disabled, or if its password is no longer the given one.
   */
  openSession(session: SessionRecord, maxSessions: number, password?: string | null): Promise<boolean>
  /** Null if it has expired or its operator is disabled. */
  findSession(
    hash: Uint8Array,
    now: number,
  ): Promise<{ readonly session: SessionRecord; readonly operator: OperatorRecord } | null>
  touchSession(hash: Uint8Array, seenAt: number): Promise<void>
  closeSession(hash: Uint8Array): Promise<void>
  closeSessions(operatorId: string): Promise<void>

  /** A new link replaces the previous one. */
  addLink(link: SignInLink): Promise<void>
  /**
   * Returns the operator and deletes the link. Null for a link that is unknown, used or expired, or whose operator is
   * disabled.
   */
  useLink(hash: Uint8Array, now: number): Promise<OperatorRecord | null>

  addAudit(entry: AuditEntry): Promise<void>
  /** Newest first, below the given id (null: from the newest). */
  listAudit(beforeId: string | null, limit: number): Promise<AuditEntry[]>
  /** Deletes expired sessions and links, and audit entries from before the given time. */
  prune(now: number, auditBefore: number): Promise<void>
}

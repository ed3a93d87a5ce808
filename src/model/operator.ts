// An operator: a person who runs the service through the console. Belongs to the installation, not to a tenant; sees
// all tenants or those of a list.

import type { Tenant } from './principal.ts'

/** `viewer` reads; `admin` also makes changes. */
export type OperatorRole = 'viewer' | 'admin'

export const OPERATOR_ROLES: readonly OperatorRole[] = ['viewer', 'admin']

export interface Operator {
  readonly id: string
  readonly name: string
  readonly role: OperatorRole
  /** Null: all tenants. */
  readonly tenants: readonly Tenant[] | null
}

/** An operator as stored. */
export interface OperatorRecord extends Operator {
  /** The encoded password hash; null: the operator signs in by link only. */
  readonly password: string | null
  readonly createdAt: number
  readonly disabledAt: number | null
}

/** One action of an operator, as stored and shown. */
export interface AuditEntry {
  /** A UUIDv7: id order is time order, to the millisecond. */
  readonly id: string
  readonly at: number
  /** Null before sign-in, and for commands. */
  readonly operatorId: string | null
  readonly operator: string
  readonly action: AuditAction
  readonly tenant: Tenant | null
  /** The id of the event, token, refusal, subscription or operator that it was done to. */
  readonly target: string | null
  readonly requestId: string | null
  readonly address: string | null
}

export type AuditAction =
  | 'sign_in'
  | 'sign_in_failed'
  | 'sign_out'
  | 'sign_out_everywhere'
  | 'token_create'
  | 'token_rotate'
  | 'token_disable'
  | 'token_enable'
  | 'token_limit'
  | 'token_import'
  | 'hook_create'
  | 'hook_rotate'
  | 'hook_disable'
  | 'hook_enable'
  | 'hook_sample'
  | 'erase'
  | 'export'
  | 'import'
  | 'promote'
  | 'requeue'
  | 'refusal_accept'
  | 'test_event'
  | 'subscription_create'
  | 'subscription_delete'
  | 'endpoint_set'
  | 'endpoint_remove'
  | 'endpoint_pause'
  | 'endpoint_resume'
  | 'endpoint_rotate'
  | 'endpoint_test'
  | 'endpoint_replay'
  | 'endpoint_disable'
  | 'operator_add'
  | 'operator_password'
  | 'operator_role'
  | 'operator_remove'
  | 'operator_disable'
  | 'operator_enable'
  | 'operator_link'
  | 'retention_set'
  | 'retention_delete'

/** The operator's name in audit entries of commands. */
export const COMMAND_LINE = '(command line)'

/** The operator's name in audit entries of retention. */
export const RETENTION_SERVICE = '(retention)'

/** The operator's name in audit entries of pushes: an endpoint said that it is gone. */
export const PUSH_SERVICE = '(push)'

/** Most tenants that one operator may be limited to: every request searches the list. */
export const MAX_OPERATOR_TENANTS = 1000

const NAME = /^[a-z0-9][a-z0-9_.@-]{0,63}$/

export function isOperatorName(text: string): boolean {
  return NAME.test(text)
}

export function roleAllows(needed: OperatorRole, role: OperatorRole): boolean {
  return needed === 'viewer' || role === 'admin'
}

/** Whether no other enabled admin is among all operators. */
export function isLastAdmin({ id, role, disabledAt }: OperatorRecord, all: readonly OperatorRecord[]): boolean {
  if (role !== 'admin' || disabledAt !== null) return false
  return !all.some((other) => other.id !== id && other.role === 'admin' && other.disabledAt === null)
}

export function maySee({ tenants }: Operator, { accountId, companyId }: Tenant): boolean {
  return tenants === null || tenants.some((one) => one.accountId === accountId && one.companyId === companyId)
}

/** The key id stored with events and deliveries for an operator's actions. No token has such a key id. */
export function operatorKeyId({ id }: Operator): string {
  return `op_${id}`
}

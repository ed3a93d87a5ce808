// An operator: a person who looks after the service through the console. Belongs to the installation and not to a tenant;
// sees all tenants, or those of a list.

import type { Tenant } from './principal.ts'

/** `viewer` reads; `admin` also changes things. Compared by rank: an admin may do what a viewer may. */
export type OperatorRole = 'viewer' | 'admin'

export const OPERATOR_ROLES: readonly OperatorRole[] = ['viewer', 'admin']

export interface Operator {
  readonly id: string
  readonly name: string
  readonly role: OperatorRole
  /** Null: every tenant there is. */
  readonly tenants: readonly Tenant[] | null
}

/** An operator as kept. */
export interface OperatorRecord extends Operator {
  /** The encoded hash; null: signs in by a link only. */
  readonly password: string | null
  readonly createdAt: number
  readonly disabledAt: number | null
}

/** What operators did, as it is kept and shown. */
export interface AuditEntry {
  /** A UUIDv7: in the order of their ids entries are in the order of time, to the millisecond. */
  readonly id: string
  readonly at: number
  /** Null where nobody had signed in yet, or a command did it. */
  readonly operatorId: string | null
  readonly operator: string
  readonly action: AuditAction
  readonly tenant: Tenant | null
  /** What it was done to: the id of an event, a token, a refusal, a subscription, an operator. */
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
  | 'promote'
  | 'requeue'
  | 'refusal_accept'
  | 'test_event'
  | 'subscription_create'
  | 'subscription_delete'
  | 'operator_add'
  | 'operator_passwd'
  | 'operator_disable'
  | 'operator_enable'
  | 'operator_link'

/** Who a command is in the audit log: whoever may run it on the machine. */
export const COMMAND_LINE = '(command line)'

/** How many tenants one operator may be limited to: the list is looked through with each request. */
export const MAX_OPERATOR_TENANTS = 1000

const NAME = /^[a-z0-9][a-z0-9_.@-]{0,63}$/

export function isOperatorName(text: string): boolean {
  return NAME.test(text)
}

export function roleAllows(needed: OperatorRole, role: OperatorRole): boolean {
  return needed === 'viewer' || role === 'admin'
}

export function maySee({ tenants }: Operator, { accountId, companyId }: Tenant): boolean {
  return tenants === null || tenants.some((one) => one.accountId === accountId && one.companyId === companyId)
}

/** The key id under which what an operator does is kept with events and deliveries. No token has such a one. */
export function operatorKeyId({ id }: Operator): string {
  return `op_${id}`
}

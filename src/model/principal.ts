// The authenticated caller: its tenant and what its token allows.

export interface Tenant {
  readonly accountId: number
  readonly companyId: number
}

export interface Principal extends Tenant {
  readonly keyId: string
  /** '' for a token without scope. */
  readonly scope: string
  /** Set if the caller is an operator with a session instead of a token. */
  readonly operator?: { readonly id: string; readonly name: string }
}

/** The reserved scope that reads and processes, and may not send. */
export const PROCESSOR_SCOPE = 'processor'

/** The reserved scope that may also erase, and may not send. */
export const ADMIN_SCOPE = 'admin'

/** The scope stored for an operator's actions. A token with this scope has no extra rights. */
export const OPERATOR_SCOPE = 'operator'

const SCOPE = /^[a-z0-9][a-z0-9_.:-]{0,63}$/

export function isScope(text: string): boolean {
  return SCOPE.test(text)
}

/** `7/42` is account 7 of company 42, as in the header `Intray-Tenant`. */
export function parseTenant(text: string): Tenant | null {
  const match = /^([1-9]\d{0,15})\/([1-9]\d{0,15})$/.exec(text)
  const [accountId, companyId] = [Number(match?.[1]), Number(match?.[2])]
  return match && Number.isSafeInteger(accountId) && Number.isSafeInteger(companyId) ? { accountId, companyId } : null
}

export function tenantText({ accountId, companyId }: Tenant): string {
  return `${accountId}/${companyId}`
}

export function isSameTenant(one: Tenant, other: Tenant): boolean {
  return one.accountId === other.accountId && one.companyId === other.companyId
}

// Deterministic event keys for events made from stored rows, so that making one again is a duplicate.

import { hash } from 'node:crypto'
import type { Tenant } from './principal.ts'

/** In the form of a UUID, and the same for the same input. */
export function derivedKey(what: string, { companyId, accountId }: Tenant, id: number): string {
  const hex = hash('sha256', `${what}:${companyId}:${accountId}:${id}`, 'hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join('-')
}

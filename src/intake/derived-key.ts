// The minted key of what is made from something that is kept already: made again, it is the same arrival again.

import { hash } from 'node:crypto'
import type { Tenant } from '../model/principal.ts'

/** In the form of the UUIDs that nodes mint, and the same for the same thing. */
export function derivedKey(what: string, { companyId, accountId }: Tenant, id: number): string {
  const hex = hash('sha256', `${what}:${companyId}:${accountId}:${id}`, 'hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join('-')
}

// The key by which an import recognises a message without a reference, so that it is stored once, whatever files name it.
//
//   in its own tenant    the id of its request: the key under which a server stored it (intake/accept.ts)
//   in another tenant    derived from the database that it comes from, its id there and the tenant: it is a message of its own,
//                        and gets this key as the id of its request, so that it is recognised after the next export too
//
// A promotion belongs to its revision: it gets the key that a promotion in this database would have, so that an erasure of the
// revision finds it.

import { derivedKey } from '../model/derived-key.ts'
import type { EventMeta } from '../model/event.ts'
import { isSameTenant, type Tenant } from '../model/principal.ts'
import type { ReadRow } from './export-row.ts'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

export interface ImportKeys {
  /** What is stored of a row in `tenant`. */
  metaIn(row: ReadRow, tenant: Tenant): EventMeta
  /** The one to try first. */
  keyOf(row: ReadRow, tenant: Tenant): string
  /** If another message has that one. */
  otherKeyOf(row: ReadRow, tenant: Tenant): string
}

export function createImportKeys(sourceUuid: string): ImportKeys {
  const otherKeyOf = ({ id }: ReadRow, tenant: Tenant) => derivedKey(`import:${sourceUuid}`, tenant, id)
  return {
    metaIn(row, tenant) {
      if (isSameTenant(row.meta, tenant)) return row.meta
      const { accountId, companyId } = tenant
      return { ...row.meta, accountId, companyId, requestId: otherKeyOf(row, tenant) }
    },
    keyOf(row, tenant) {
      const isOwn = isSameTenant(row.meta, tenant) && UUID.test(row.meta.requestId)
      return isOwn ? row.meta.requestId : otherKeyOf(row, tenant)
    },
    otherKeyOf,
  }
}

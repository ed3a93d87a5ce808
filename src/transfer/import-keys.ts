// The key by which an import recognises a message without a reference, so that it is stored once, whatever files name it.
//
//   taken in by a server   the id of its request: the key under which that server stored it (intake/accept.ts)
//   made otherwise         derived from the database that it comes from and its id there
//
// A promotion belongs to its revision: it gets the key that a promotion in this database would have, so that an erasure of the
// revision finds it.

import { derivedKey } from '../model/derived-key.ts'
import type { Tenant } from '../model/principal.ts'
import type { ReadRow } from './export-row.ts'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

export interface ImportKeys {
  /** The one to try first. */
  keyOf(row: ReadRow, tenant: Tenant): string
  /** If another message has that one. */
  otherKeyOf(row: ReadRow, tenant: Tenant): string
}

/** `isMapped`: rows go to another tenant than they come from, which may have a row of the same request. */
export function createImportKeys(sourceUuid: string, isMapped: boolean): ImportKeys {
  const otherKeyOf = ({ id }: ReadRow, tenant: Tenant) => derivedKey(`import:${sourceUuid}`, tenant, id)
  return {
    otherKeyOf,
    keyOf: (row, tenant) => {
      const { origin, requestId } = row.meta
      const isOwn = !isMapped && (origin === 'intake' || origin === 'test') && UUID.test(requestId)
      return isOwn ? requestId : otherKeyOf(row, tenant)
    },
  }
}

// Erasing what senders wrote. An erased row keeps its id, times, size, tenant and token; its dedupe key stays, and HMACs
// replace its channel_ref and the digest of its bytes (model/erasure.ts).
//
// Promises
// - `erase` is one transaction: payload, references, sender's headers and history texts go together, and one row of the erasure
//   log is written for each erased row. An id is never logged twice. A history text that comes later is not kept.
// - An erased reference still deduplicates: its bytes are a duplicate, other bytes a revision.
// - After `erase` the index still holds copies. `purge` removes them, and on a store with files of its own also what the files
//   keep of deleted content; until then the erasure is pending. It can be killed at any point and resumed.
// - Log ids are in commit order.

import type { ErasureLogId, ErasureRecord } from '../../model/erasure.ts'
import type { Tenant } from '../../model/principal.ts'

export interface ErasureStore {
  /** Erases events and revisions, at most ERASE_ROWS of model/erasure.ts; passes over unknown and erased ones. Returns how many it erased. */
  erase(tenant: Tenant, ids: readonly number[], at: number): Promise<number>
  deleteRefusals(tenant: Tenant, ids: readonly number[]): Promise<void>
  /** The events that nodes stored under these minted keys and without a reference. */
  findMinted(tenant: Tenant, mintedKeys: readonly string[]): Promise<number[]>

  /** One bounded step. `more`: call again; `waits`: somebody reads an old state of the files, so call again later. */
  purge(): Promise<{ readonly more: boolean; readonly waits: boolean }>
  /** Whether copies of what the tenant had erased may still be there. */
  isPending(tenant: Tenant): Promise<boolean>

  logId(): Promise<ErasureLogId>
  /** The erasure log, oldest first, from after the given id. */
  log(afterId: number, limit: number): Promise<ErasureRecord[]>
  /** Of the rows that these records name, those that this database still holds unerased: after a restore. */
  unerased(records: readonly ErasureRecord[]): Promise<number[]>
}

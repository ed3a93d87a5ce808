// Which message has a dedupe key: in `dedupe`, or among the newest, which are not there yet.

import type { DatabaseSync } from 'node:sqlite'
import { createMintedDigest } from '../../model/dedupe.ts'
import type { RecentKeys } from '../recent-keys.ts'
import { prepareFindArrival } from './arrivals.ts'
import type { StoredKeys } from './stored-keys.ts'
import { type DedupeKey, prepareFindUnsorted, unsortedKeys } from './unsorted-keys.ts'

const SELECT = 'SELECT event_id, sha256, minted_key FROM dedupe WHERE company_id = ? AND digest = ?'

/** The message that has a key. */
export type First = Pick<DedupeKey, 'id' | 'sha256' | 'mintedKey'>

export interface KnownKeys {
  /** Also if only the remembered part of another key is the same: `find` then tells. */
  mayHave(companyId: number, digest: Uint8Array): boolean
  find(companyId: number, digest: Uint8Array): First | null
}

/**
 * `recent`: where the newest are remembered. Else what is filed is looked through; what is not filed is not known. `stored`: who
 * knows of most new keys that they are new.
 */
export function prepareKnownKeys(
  db: DatabaseSync,
  recent: RecentKeys | null,
  stored: StoredKeys | null = null,
): KnownKeys {
  const select = db.prepare(SELECT)
  select.setReturnArrays(true)
  const findArrival = prepareFindArrival(db)
  const findUnsorted = prepareFindUnsorted(db)
  const mintedDigest = createMintedDigest()

  function arrivedKey(id: number): DedupeKey | null {
    const arrival = findArrival(id)
    return arrival && { ...arrival, id, mintedKey: Buffer.from(mintedDigest(arrival.mintedKey)) }
  }

  function findRemembered(digest: Uint8Array, recent: RecentKeys): DedupeKey[] {
    const id = recent.find(digest)
    const key = id === 0 ? null : (arrivedKey(id) ?? findUnsorted(id))
    return key ? [key] : []
  }

  return {
    mayHave: (companyId, digest) =>
      (stored === null || stored.mayHave(digest)) &&
      ((recent !== null && recent.find(digest) !== 0) || select.get(companyId, digest) !== undefined),
    find(companyId, digest) {
      for (const key of recent ? findRemembered(digest, recent) : unsortedKeys(db)) {
        if (key.companyId === companyId && Buffer.compare(key.digest, digest) === 0) return key
      }
      const found = select.get(companyId, digest) as unknown as [number, Uint8Array, Uint8Array] | undefined
      return found ? { id: found[0], sha256: found[1], mintedKey: found[2] } : null
    },
  }
}

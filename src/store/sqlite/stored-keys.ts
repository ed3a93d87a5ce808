// Which dedupe keys are surely new (`../key-bits.ts`): with half a million keys in `dedupe`, looking for them was more than a quarter of the
// writer's time. They are read in slices, when the writer has the time (`key-reading.ts`).

import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { KeyBits, type KeyBitsBounds, type Place } from '../key-bits.ts'
import type { RecentKeys } from '../recent-keys.ts'

const SELECT_NEXT = `SELECT company_id, digest FROM dedupe WHERE (company_id, digest) > (?, ?)
  ORDER BY company_id, digest LIMIT ? + 0`

/** Read in one go: it delays those behind it. */
const SLICE_KEYS = 256

export class StoredKeys extends KeyBits {
  readonly #select: StatementSync

  constructor(db: DatabaseSync, recent: RecentKeys, bounds: KeyBitsBounds = { sliceKeys: SLICE_KEYS }) {
    super(recent, bounds)
    this.#select = db.prepare(SELECT_NEXT)
    this.#select.setReturnArrays(true)
  }

  /** The next slice; outside of any transaction. If it fails, it can be tried again. */
  readSome(): void {
    if (this.hasMore) this.learn(this.#select.all(...this.next()) as unknown as Place[])
  }
}

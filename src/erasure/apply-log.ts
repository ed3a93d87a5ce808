// Erased stays erased: carries out an erasure log on a database that may hold an older state, such as a restored backup.

import { ERASE_ROWS, type ErasureRecord } from '../model/erasure.ts'
import { tenantText } from '../model/principal.ts'
import type { Clock } from '../runtime/clock.ts'
import type { ErasureStore } from '../store/contract/erasures.ts'
import { Erasures, type ErasuresOptions } from './erasures.ts'
import type { NamedRefusals } from './named-refusals.ts'

/** The whole log of a database, oldest first. */
export async function* erasureLog(erasures: Pick<ErasureStore, 'log'>): AsyncGenerator<ErasureRecord> {
  for (let after = 0; ; ) {
    const page = await erasures.log(after, ERASE_ROWS)
    if (page.length === 0) return
    yield* page
    after = page.at(-1)!.id
  }
}

/**
 * Erases what the records name and the target still holds, with its refusals. Returns how many rows. Records of rows that the
 * target does not hold, or holds with other bytes, change nothing. What the index and the files keep goes with `purge`.
 */
export async function applyErasures(
  records: AsyncIterable<ErasureRecord>,
  target: ErasuresOptions['store'],
  clock: Clock,
): Promise<number> {
  const erasures = new Erasures({ store: target, clock })
  let erased = 0
  let page: ErasureRecord[] = []
  /** Of the tenant that came last: an erasure stands in the log as one. */
  let named: NamedRefusals | null = null
  let tenant = ''
  const apply = async () => {
    const held = new Set(await target.erasures.unerased(page))
    const tenants = Map.groupBy(
      page.filter(({ eventId }) => held.has(eventId)),
      tenantText,
    )
    for (const [text, records] of tenants) {
      if (named === null || text !== tenant) named = erasures.refusalsOf(records[0]!)
      tenant = text
      erased += await erasures.rows(
        records[0]!,
        records.map(({ eventId }) => eventId),
        named,
      )
    }
    page = []
  }
  for await (const record of records) {
    page.push(record)
    if (page.length === ERASE_ROWS) await apply()
  }
  if (page.length > 0) await apply()
  return erased
}

// Promotions in an import: an event that was promoted from a revision names that revision by its id, which is another one here.

import { derivedKey } from '../model/derived-key.ts'
import { promotedFrom } from '../model/event-view.ts'
import type { EventMeta } from '../model/event.ts'
import type { Tenant } from '../model/principal.ts'
import type { EventReader } from '../store/contract/events.ts'
import type { ReadRow } from './export-row.ts'

const PAGE = 100

/** What became of a revision: where it is, or that it was erased here. */
type Imported = 'erased' | { readonly firstId: number; readonly sha256: Uint8Array }

export type Promoted =
  | { readonly isErased: true }
  /** `key`: null if the revision is not here; then the row is an event like others. */
  | { readonly isErased: false; readonly key: string | null; readonly meta: EventMeta }

export class Promotions {
  readonly #events: Pick<EventReader, 'revisions'>
  /** Ids of the source. */
  readonly #revisionIds: ReadonlySet<number>
  readonly #imported = new Map<number, Imported>()

  /** `revisionIds`: those that events of the file were promoted from. */
  constructor(events: Pick<EventReader, 'revisions'>, revisionIds: ReadonlySet<number>) {
    this.#events = events
    this.#revisionIds = revisionIds
  }

  /** Notes where a row of the file is now. */
  note({ id, sha256 }: ReadRow, firstId: number, isErased: boolean): void {
    if (this.#revisionIds.has(id)) this.#imported.set(id, isErased ? 'erased' : { firstId, sha256: sha256! })
  }

  async of(row: ReadRow, tenant: Tenant, meta: EventMeta): Promise<Promoted> {
    const source = this.#imported.get(promotedFrom(row.meta)!)
    if (source === 'erased') return { isErased: true }
    const revisionId = source ? await this.#find(source) : null
    const plain = { ...meta, origin: 'intake', route: '/v1/inbox/events' } as const
    if (revisionId === null) return { isErased: false, key: null, meta: plain }
    const route = row.meta.route.replace(/\d+(?=\/promote$)/, String(revisionId))
    return { isErased: false, key: derivedKey('promotion', tenant, revisionId), meta: { ...meta, route } }
  }

  async #find({ firstId, sha256 }: Exclude<Imported, 'erased'>): Promise<number | null> {
    for (let after = 0; ; ) {
      const page = await this.#events.revisions(firstId, after, PAGE)
      const found = page.find((revision) => Buffer.compare(revision.sha256, sha256) === 0)
      if (found) return found.id
      if (page.length < PAGE) return null
      after = page.at(-1)!.id
    }
  }
}

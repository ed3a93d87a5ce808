// Queue of stream readers that read pages from the store: tenants in turn, one page per turn, and few read at once. A thousand
// readers that reconnect together take neither all connections of the store nor the event loop, and a reader that is a million
// events behind does not delay the others.

import { setImmediate as nextTurn } from 'node:timers/promises'
import { tenantText } from '../model/principal.ts'
import { FairSlots } from '../runtime/fair-slots.ts'
import type { Follower } from '../store/contract/follow.ts'
import type { PageReader, Render } from './tenant-feed.ts'

const READS_AT_ONCE = 4
/** A tenant whose streams all are behind otherwise keeps as many cores busy as the others need for their reads. */
const READS_OF_A_TENANT = 1

export interface PageQueueOptions {
  readonly follower: Follower
  readonly render: Render
  readonly onTrouble: (doing: string, error: unknown) => void
}

export class PageQueue {
  readonly #options: PageQueueOptions
  readonly #slots = new FairSlots({
    slots: READS_AT_ONCE,
    maxPerHolder: READS_OF_A_TENANT,
    maxWaitingPerHolder: Number.POSITIVE_INFINITY,
  })
  /** Readers whose read failed, or whose events a rebuild of the index has not reached yet. */
  readonly #parked: PageReader[] = []

  constructor(options: PageQueueOptions) {
    this.#options = options
  }

  add(reader: PageReader): void {
    if (reader.queued || reader.isOver) return
    reader.queued = true
    void this.#slots.run(tenantText(reader.tenant), () => this.#read(reader))
  }

  /** Gives parked readers another turn. */
  retry(): void {
    for (const reader of this.#parked.splice(0)) this.add(reader)
  }

  async #read(reader: PageReader): Promise<void> {
    const { follower, render, onTrouble } = this.#options
    // A store that answers synchronously would otherwise block the event loop for all pages.
    await nextTurn()
    let more: boolean | null = null
    try {
      const page = reader.isOver ? null : await follower.after(reader.tenant, reader.cursor, reader.pageRows)
      if (page && !reader.isOver) more = reader.take(page, render)
    } catch (error) {
      onTrouble('read events for a stream', error)
    }
    reader.queued = false
    if (more) this.add(reader)
    else if (more === null && !reader.isOver) this.#parked.push(reader)
  }
}

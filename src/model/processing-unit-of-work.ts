// Unit of work of a plan: the deliveries that it read, by lane, with their state before and after its changes.

import {
  addLeases,
  type Change,
  type Delivery,
  type DeliveryState,
  type HistoryEntry,
  type LeaseFacts,
  leaseFacts,
} from './processing.ts'

export class UnitOfWork {
  readonly #before = new Map<number, Delivery>()
  readonly #now = new Map<number, Delivery>()
  readonly #lanes = new Map<number, Set<number>>()
  readonly #changed = new Set<number>()
  readonly #entries: HistoryEntry[] = []
  readonly #others: ReadonlyMap<number, LeaseFacts>

  /** `others`: leases in the same lanes that the plan does not change. */
  constructor(rows: readonly Delivery[], others: readonly LeaseFacts[] = []) {
    this.#others = new Map(others.map((one) => [one.lane, one]))
    for (const row of rows.toSorted((a, b) => a.eventId - b.eventId)) this.#add(row)
  }

  get(id: number): Delivery | undefined {
    return this.#now.get(id)
  }

  rows(): Delivery[] {
    return Array.from(this.#now.values())
  }

  rowsOf(lane: number): Delivery[] {
    return Array.from(this.#lanes.get(lane) ?? [], (id) => this.#now.get(id)!)
  }

  /** Null: the lane has no lease. */
  leasesOf(lane: number): LeaseFacts | null {
    const known = leaseFacts(this.#leasedOf(lane))
    const others = this.#others.get(lane)
    return others ? addLeases(known, others) : known
  }

  /** The deliveries in its lane that are under the same lease. */
  runOf({ lane, leaseId }: Delivery): Delivery[] {
    return this.#leasedOf(lane).filter((one) => one.leaseId === leaseId)
  }

  /** `from` is the delivery before the change; it is added if the plan had not read it. */
  put(from: Delivery, { delivery, entry }: Change): Delivery {
    if (!this.#before.has(from.eventId)) this.#add(from)
    this.#now.set(delivery.eventId, delivery)
    this.#changed.add(delivery.eventId)
    if (entry) this.#entries.push(entry)
    return delivery
  }

  changes(): { deliveries: Delivery[]; entries: HistoryEntry[] } {
    return { deliveries: Array.from(this.#changed, (id) => this.#now.get(id)!), entries: this.#entries }
  }

  counts(lane: number): { done: number; dead: number } {
    const more = (state: DeliveryState): number => {
      let count = 0
      for (const id of this.#lanes.get(lane) ?? []) {
        if (this.#now.get(id)!.state === state) count += 1
        if (this.#before.get(id)!.state === state) count -= 1
      }
      return count
    }
    return { done: more('done'), dead: more('dead') }
  }

  #leasedOf(lane: number): Delivery[] {
    return this.rowsOf(lane).filter(({ state }) => state === 'leased')
  }

  #add(row: Delivery): void {
    this.#before.set(row.eventId, row)
    this.#now.set(row.eventId, row)
    const lane = this.#lanes.get(row.lane)
    if (lane) lane.add(row.eventId)
    else this.#lanes.set(row.lane, new Set([row.eventId]))
  }
}

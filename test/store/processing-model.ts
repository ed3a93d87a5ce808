// A history of a queue: random arrivals, claims, acks, extensions, releases, crashes of processors and steps of the clock,
// held against what the contract says. Each history has a tenant of its own, so that many share one database.

import assert from 'node:assert/strict'
import { newUuid } from '../../src/runtime/id.ts'
import type { ClaimedEvent } from '../../src/store/contract/processing.ts'
import type { Store } from '../../src/store/contract/store.ts'
import { idOf, item, NOON } from './rows.ts'
import { type Random, random } from './seed.ts'

const CHANNELS = [null, 'a', 'b', 'c'] as const
const SUBSCRIPTIONS = ['default', 'second'] as const
/** `second` sets its number itself. */
const MAX_ATTEMPTS: Readonly<Record<string, number>> = { default: 3, second: 2 }
const DEFAULT_MAX = 3

interface Known {
  readonly id: number
  readonly lane: string
  state: 'pending' | 'leased' | 'done'
  leaseId: string | null
  expiresAt: number
  ordered: boolean
  attempts: number
  /** Released as dead. */
  isParked: boolean
  /** Its lease was over when somebody claimed: it may be gone even if the clock goes back. */
  unsure: boolean
}

/** A lease that a processor holds, or believes to hold. */
interface Held {
  readonly id: number
  readonly leaseId: string
}

let tenants = 0

export interface HistoryOptions {
  readonly steps?: number
  /** What is left is not worked off. */
  readonly isCut?: boolean
}

export async function runHistory(store: Store, seed: number, options: HistoryOptions = {}): Promise<History> {
  const { steps = 45, isCut = false } = options
  const history = new History(store, random(seed))
  try {
    await history.begin()
    for (let n = 0; n < steps; n++) await history.step()
    if (!isCut) await history.end()
    return history
  } catch (error) {
    throw new Error(`history ${seed}: ${(error as Error).message}\n${history.log.slice(-30).join('\n')}`, {
      cause: error,
    })
  }
}

export class History {
  readonly log: string[] = []
  /** The latest time that its clock showed. */
  latest = NOON
  readonly #store: Store
  readonly #random: Random
  readonly #tenant = { accountId: 5, companyId: 1000 + ++tenants }
  readonly #known = new Map<string, Map<number, Known>>(SUBSCRIPTIONS.map((name) => [name, new Map()]))
  readonly #held = new Map<string, Held[]>(SUBSCRIPTIONS.map((name) => [name, []]))
  #now = NOON

  constructor(store: Store, chance: Random) {
    this.#store = store
    this.#random = chance
  }

  get companyId(): number {
    return this.#tenant.companyId
  }

  async begin(): Promise<void> {
    await this.#store.processing.createSubscription(
      { tenant: this.#tenant, subscription: 'second' },
      'beginning',
      this.#now,
      { maxAttempts: MAX_ATTEMPTS.second! },
    )
    await this.#arrive()
  }

  async step(): Promise<void> {
    const chance = this.#random
    const subscription = chance.pick(SUBSCRIPTIONS)
    switch (chance.pick(['arrive', 'claim', 'claim', 'claim', 'ack', 'ack', 'extend', 'release', 'clock', 'requeue'])) {
      case 'arrive':
        return this.#arrive()
      case 'claim':
        await this.#claim(subscription)
        return
      case 'ack':
        return this.#ack(subscription, this.#some(subscription))
      case 'extend':
        return this.#extend(subscription, this.#some(subscription))
      case 'release':
        return this.#release(subscription, this.#some(subscription))
      case 'requeue':
        return this.#requeue(subscription)
      default:
        // A processor that crashed just never comes back: its leases are among those that are never picked again.
        this.#now += chance.below(4) === 0 ? -chance.below(12_000) : chance.below(20_000)
        this.latest = Math.max(this.latest, this.#now)
        this.log.push(`clock ${this.#now - NOON}`)
    }
  }

  /** Everything can be drained: nothing is lost, and what was not acknowledged is dead. */
  async end(): Promise<void> {
    for (const subscription of SUBSCRIPTIONS) {
      await this.#drain(subscription)
      await this.#requeue(subscription)
      await this.#drain(subscription)
      const known = this.#known.get(subscription)!
      const ids = Array.from(known.keys())
      const queue = { tenant: this.#tenant, subscription }
      const states = await this.#store.processing.states(queue, ids, this.#now)
      for (const events of Map.groupBy(known.values(), ({ lane }) => lane).values()) {
        const first = Math.min(...events.map(({ id }) => id))
        const counts = await this.#store.processing.counts(queue, [first])
        assert.deepEqual(counts.get(first), { done: events.length, dead: 0 }, 'what is done is counted')
      }
      for (const { id, state } of known.values()) {
        assert.equal(states.get(id), 'done', `event ${id} was lost in ${subscription}`)
        assert.equal(state, 'done', `event ${id} is done, but nobody acknowledged it in ${subscription}`)
      }
    }
  }

  async #drain(subscription: string): Promise<void> {
    for (let rounds = 0; rounds < 400; rounds++) {
      this.#now += 3_600_000
      const claimed = await this.#claim(subscription, { ordered: rounds % 3 !== 0, limit: 50, isPlain: true })
      if (claimed.length === 0) return
      await this.#ack(
        subscription,
        claimed.map(({ event, leaseId }) => ({ id: event.id, leaseId })),
      )
    }
    assert.fail(`${subscription} cannot be drained`)
  }

  async #arrive(): Promise<void> {
    const channels = Array.from({ length: 1 + this.#random.below(5) }, () => this.#random.pick(CHANNELS))
    const outcomes = await this.#store.journal.append(
      channels.map((channelRef) => item({ ...this.#tenant, channelRef, receivedAt: this.#now })),
    )
    for (const [n, outcome] of outcomes.entries()) {
      const id = idOf(outcome)
      const lane = channels[n] ?? `alone ${id}`
      for (const known of this.#known.values()) {
        known.set(id, {
          id,
          lane,
          state: 'pending',
          leaseId: null,
          expiresAt: 0,
          ordered: false,
          attempts: 0,
          isParked: false,
          unsure: false,
        })
      }
      this.log.push(`arrive ${id} in ${lane}`)
    }
    const { cursor } = await this.#store.index.progress()
    for (let at = cursor; at < idOf(outcomes.at(-1)); ) {
      at = (await this.#store.index.step({ maxRows: 1000, maxBytes: 1 << 24 })).cursor
    }
  }

  async #claim(
    subscription: string,
    { ordered = this.#random.below(3) > 0, limit = 1 + this.#random.below(6), isPlain = false } = {},
  ): Promise<readonly ClaimedEvent[]> {
    const channelRef = isPlain || this.#random.below(4) > 0 ? null : this.#random.pick(CHANNELS)
    const maxBytes = isPlain || this.#random.below(4) > 0 ? 1 << 20 : 1 + this.#random.below(20)
    const leaseId = newUuid()
    const leaseExpiresAt = this.#now + 5000 + this.#random.below(25_000)
    const known = this.#known.get(subscription)!
    const before = Array.from(known.values(), (one) => ({ ...one }))
    for (const one of known.values()) {
      if (one.state === 'leased' && one.expiresAt <= this.#now) one.unsure = true
    }
    const claimed = await this.#store.processing.claim({
      tenant: this.#tenant,
      subscription,
      limit,
      maxBytes,
      ordered,
      channelRef,
      leaseId,
      leaseExpiresAt,
      keyId: 'PPPPPPPPPP',
      maxAttempts: DEFAULT_MAX,
      now: this.#now,
    })
    assert.ok(claimed)
    const ids = claimed.map(({ event }) => event.id)
    this.log.push(`claim ${subscription} ${ordered ? 'ordered' : 'unordered'} ${limit}: ${ids.join(' ')}`)
    if (channelRef !== null)
      assert.ok(
        ids.every((id) => known.get(id)?.lane === channelRef),
        'from the conversation that was named',
      )
    const bytes = claimed.reduce((sum, { event }) => sum + event.size, 0)
    assert.ok(bytes <= maxBytes || ids.length === 1, 'no more bytes than were asked for, or one event')
    assert.ok(ids.length <= limit && new Set(ids).size === ids.length, 'a claim hands out each event once')
    const states = await this.#store.processing.states(
      { tenant: this.#tenant, subscription },
      Array.from(known.keys()),
      this.#now,
    )
    for (const { event, attempts } of claimed) {
      const one = known.get(event.id)
      assert.ok(one, `event ${event.id} is nobody's`)
      assert.notEqual(one.state, 'done', `event ${event.id} was acknowledged and handed out again`)
      assert.ok(attempts <= MAX_ATTEMPTS[subscription]!, `event ${event.id} was handed out ${attempts} times`)
      if (one.state === 'pending') assert.equal(attempts, one.attempts + 1, `attempts of event ${event.id}`)
      this.#checkLane(one, ids, before, ordered, states, MAX_ATTEMPTS[subscription]!)
    }
    for (const { event, attempts } of claimed) {
      const one = known.get(event.id)!
      Object.assign(one, { state: 'leased', leaseId, expiresAt: leaseExpiresAt, ordered, attempts, unsure: false })
      this.#held.get(subscription)!.push({ id: event.id, leaseId })
    }
    return claimed
  }

  #checkLane(
    one: Known,
    ids: readonly number[],
    before: readonly Known[],
    ordered: boolean,
    states: ReadonlyMap<number, string>,
    maxAttempts: number,
  ): void {
    for (const other of before.filter(({ lane }) => lane === one.lane)) {
      const isLive = other.state === 'leased' && other.expiresAt > this.#now && !other.unsure
      if (isLive && (other.id === one.id || other.ordered || ordered)) {
        assert.fail(`event ${one.id} was handed out while ${other.id} of its lane is under a live lease`)
      }
      if (!ordered || other.id >= one.id || other.state === 'done') continue
      if (states.get(other.id) === 'dead') {
        assert.ok(other.isParked || other.attempts === maxAttempts, `event ${other.id} died early`)
      } else assert.ok(ids.indexOf(other.id) !== -1, `event ${one.id} overtook ${other.id}`)
      if (ids.includes(other.id)) assert.ok(ids.indexOf(other.id) < ids.indexOf(one.id), 'a run is in order')
    }
  }

  /** Some of what processors hold, held, or believe to hold. */
  #some(subscription: string): Held[] {
    const held = this.#held.get(subscription)!
    const recent = held.slice(-12)
    return recent.filter(() => this.#random.below(3) === 0)
  }

  async #ack(subscription: string, items: readonly Held[]): Promise<void> {
    if (items.length === 0) return
    const answers = await this.#store.processing.ack({ tenant: this.#tenant, subscription, items, now: this.#now })
    for (const [n, { id, leaseId }] of items.entries()) {
      const one = this.#known.get(subscription)!.get(id)!
      const { ok } = answers![n]!
      this.log.push(`ack ${subscription} ${id} ${leaseId.slice(-4)}: ${ok}`)
      const again = one.state === 'done' && one.leaseId === leaseId
      this.#holdAgainst(one, leaseId, ok, again, 'acknowledged')
      if (ok) one.state = 'done'
    }
  }

  /** A lease that is live counts; one that expired, or was another's since, does not. */
  #holdAgainst(one: Known, leaseId: string, ok: boolean, again: boolean, what: string): void {
    const holds = one.state === 'leased' && one.leaseId === leaseId && one.expiresAt > this.#now
    if (ok && !again) assert.ok(holds, `event ${one.id} was ${what} under a lease that was lost`)
    if (!ok) assert.ok(!again && (!holds || one.unsure), `event ${one.id} was held, and could not be ${what}`)
  }

  async #extend(subscription: string, items: readonly Held[]): Promise<void> {
    if (items.length === 0) return
    const leaseExpiresAt = this.#now + 1000 + this.#random.below(20_000)
    const request = { tenant: this.#tenant, subscription, items, now: this.#now, leaseExpiresAt }
    const answers = await this.#store.processing.extend(request)
    for (const [n, { id, leaseId }] of items.entries()) {
      const one = this.#known.get(subscription)!.get(id)!
      const { ok } = answers![n]!
      this.log.push(`extend ${subscription} ${id}: ${ok}`)
      this.#holdAgainst(one, leaseId, ok, false, 'extended')
      if (ok) for (const other of this.#runOf(subscription, one)) other.expiresAt = leaseExpiresAt
    }
  }

  async #release(subscription: string, held: readonly Held[]): Promise<void> {
    const items = held.map((one) => {
      const how = this.#random.pick(['failed', 'failed', 'given back', 'dead'])
      return {
        ...one,
        delayMs: this.#random.below(2) === 0 ? null : this.#random.below(5000),
        error: how === 'given back' ? null : 'no',
        isDead: how === 'dead',
      }
    })
    if (items.length === 0) return
    const answers = await this.#store.processing.release({
      tenant: this.#tenant,
      subscription,
      items,
      now: this.#now,
      maxAttempts: DEFAULT_MAX,
      keyId: 'PPPPPPPPPP',
      jitter: this.#random.below(100) / 100,
    })
    const released = new Set<string>()
    for (const [n, asked] of Array.from(items.entries()).toSorted(([, a], [, b]) => a.id - b.id)) {
      const { id, leaseId, error, isDead } = asked
      const one = this.#known.get(subscription)!.get(id)!
      const answer = answers![n]!
      this.log.push(`release ${subscription} ${id}: ${answer.ok ? answer.state : 'lost'}`)
      const again = released.has(`${id} ${leaseId}`)
      this.#holdAgainst(one, leaseId, answer.ok, again, 'released')
      if (!answer.ok || again) continue
      const isLast = error !== null && (isDead || one.attempts === MAX_ATTEMPTS[subscription])
      assert.equal(answer.state, isLast ? 'dead' : 'pending', `event ${id} was released`)
      for (const other of this.#runOf(subscription, one).filter((behind) => behind.id >= id)) {
        released.add(`${other.id} ${leaseId}`)
        const isFailed = other.id === id && error !== null
        Object.assign(other, {
          state: 'pending',
          leaseId: null,
          isParked: isFailed && isDead,
          attempts: isFailed ? other.attempts : other.attempts - 1,
        })
      }
    }
  }

  #runOf(subscription: string, one: Known): Known[] {
    if (!one.ordered) return [one]
    return Array.from(this.#known.get(subscription)!.values()).filter(
      ({ lane, leaseId, state }) => lane === one.lane && leaseId === one.leaseId && state === 'leased',
    )
  }

  async #requeue(subscription: string): Promise<void> {
    const filter = { ids: null, channelRef: null, deadAfter: null, deadBefore: null }
    const queue = { tenant: this.#tenant, subscription }
    const known = this.#known.get(subscription)!
    const states = await this.#store.processing.states(queue, Array.from(known.keys()), this.#now)
    const dead = Array.from(known.values()).filter(({ id }) => states.get(id) === 'dead')
    assert.equal(await this.#store.processing.countDead(queue, filter), dead.length)
    const count = await this.#store.processing.requeue({
      ...queue,
      filter,
      limit: 1000,
      keyId: 'PPPPPPPPPP',
      now: this.#now,
    })
    this.log.push(`requeue ${subscription}: ${count}`)
    assert.equal(count, dead.length, 'a dry run counts what a requeue brings back')
    for (const one of dead) Object.assign(one, { state: 'pending', leaseId: null, attempts: 0, isParked: false })
  }
}

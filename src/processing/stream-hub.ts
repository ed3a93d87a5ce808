// All event streams of this node. When the index advances, the hub asks the store once which tenants have new events, and
// reads once for each tenant that has readers. An idle stream costs its share of one timer: a heartbeat and a check of its
// token.
//
// The indexer of this node wakes the hub; where other nodes index too, the hub also polls. A reader gets events from the store,
// after its cursor: a lost wake-up costs time, a doubled one nothing.

import type { Problem } from '../model/errors.ts'
import { type Tenant, tenantText } from '../model/principal.ts'
import { ConcurrencyLimiter } from '../runtime/concurrency-limiter.ts'
import type { Service } from '../runtime/service.ts'
import { coalesceCalls } from '../runtime/coalesce-calls.ts'
import type { Follower } from '../store/contract/follow.ts'
import { PageQueue } from './page-queue.ts'
import { type EndReason, type Render, type Sink, StreamReader, TenantFeed } from './tenant-feed.ts'

export interface StreamHubOptions {
  readonly follower: Follower
  readonly render: Render
  readonly maxStreams: number
  /** Percent of them that one tenant may hold. */
  readonly tenantShare: number
  readonly heartbeat: string
  readonly heartbeatMs: number
  readonly drainTimeoutMs: number
  /** Poll interval for events that other nodes index; null where only this node indexes. */
  readonly pollEveryMs: number | null
  /** Null while the token is valid. */
  readonly revocation: (keyId: string) => Problem | null | Promise<Problem | null>
  readonly onTrouble: (doing: string, error: unknown) => void
}

export interface StreamRequest extends Tenant {
  readonly keyId: string
  /** The id to continue after; null: only new events. */
  readonly after: number | null
}

/** One of the open streams. */
export interface StreamHandle {
  /** The stream sends every event with a higher id. */
  readonly start: number
  /** The last id that was sent, or `start`. */
  readonly reached: number
  /** Starts writing to the sink. */
  begin(sink: Sink): void
  /** The sink accepts more again. */
  drained(): void
  /** Closes the stream. Calling it again is fine. */
  leave(): void
}

/** With so few feeds, or so many new ids, the hub reads all feeds instead of asking which tenants have new events. */
const FEW_FEEDS = 4
const MANY_IDS = 2000
const LONGEST_TICK_MS = 1000

export class StreamHub implements Service {
  readonly #options: StreamHubOptions
  readonly #feeds = new Map<string, TenantFeed>()
  readonly #queue: PageQueue
  readonly #tickMs: number
  /** Full for more ticks than these, a reader is slow. Not measured by the clock: while this process stands still nobody can read. */
  readonly #drainTicks: number
  /** Readers by the tick at which their heartbeat is due. */
  readonly #wheel: Set<StreamReader>[]
  readonly #timers: NodeJS.Timeout[] = []
  readonly #limiter: ConcurrencyLimiter
  /** Coalesced, because after a start of the node all clients open their streams at once. */
  readonly #askHead: Follower['head']
  #tick = 0
  #settling = false
  #polling = false
  /** The last known position of the index. */
  #position = 0
  /** Up to here every feed has its events, or waits for its turn to read them. */
  #settled = 0
  #stopped = false

  constructor(options: StreamHubOptions) {
    this.#options = options
    this.#queue = new PageQueue(options)
    this.#limiter = new ConcurrencyLimiter(options.maxStreams, options.tenantShare)
    this.#askHead = coalesceCalls(() => options.follower.head())
    const ticks = Math.ceil(options.heartbeatMs / LONGEST_TICK_MS)
    this.#tickMs = options.heartbeatMs / ticks
    this.#drainTicks = Math.ceil(options.drainTimeoutMs / this.#tickMs)
    this.#wheel = Array.from({ length: ticks }, () => new Set())
  }

  /** Open streams. */
  get size(): number {
    return this.#limiter.inUse
  }

  /** Timers run while there is a stream. */
  start(): void {}

  /** Ends every stream and refuses new ones. */
  async stop(): Promise<void> {
    this.#stopped = true
    for (const reader of this.#readers()) this.#end(reader, 'stopping')
  }

  /** A hint that the index has reached this position. */
  wake(position: number): void {
    if (position <= this.#position) return
    this.#position = position
    if (this.#feeds.size > 0) void this.#settle()
  }

  /** After a change of tokens: ends the streams whose token is no longer valid. */
  recheck(): void {
    for (const reader of this.#readers()) this.#checkRevocation(reader)
  }

  /** Answers a problem if too many streams are open. Rejects if the store does not answer. */
  async enter({ accountId, companyId, keyId, after }: StreamRequest): Promise<StreamHandle | Problem> {
    if (this.#stopped) return STOPPING
    const release = this.#limiter.acquire(tenantText({ accountId, companyId }))
    if (!release) return TOO_MANY
    let reader: StreamReader | null = null
    let isLeft = false
    const leave = () => {
      if (isLeft) return
      isLeft = true
      release()
      if (reader) this.#forget(reader)
    }
    try {
      const { newest, indexed } = await this.#askHead()
      const start = after ?? newest
      return {
        start,
        get reached() {
          return reader?.cursor ?? start
        },
        begin: (sink) => {
          if (isLeft) return
          reader = this.#join({ accountId, companyId }, keyId, start, indexed, sink)
          if (this.#stopped) this.#end(reader, 'stopping')
        },
        drained: () => {
          if (!reader || reader.isOver || reader.fullTicks === null) return
          if (reader.drained()) this.#queue.add(reader)
        },
        leave,
      }
    } catch (error) {
      leave()
      throw error
    }
  }

  #join(tenant: Tenant, keyId: string, cursor: number, indexed: number, sink: Sink): StreamReader {
    if (this.#feeds.size === 0) {
      // Without streams the hub follows nothing: it starts at the position of the index.
      this.#position = this.#settled = Math.max(this.#position, indexed)
      this.#startTimers()
    }
    this.wake(indexed)
    const key = tenantText(tenant)
    const feed = this.#feeds.get(key) ?? new TenantFeed(tenant, this.#position)
    this.#feeds.set(key, feed)
    const reader = new StreamReader(feed, keyId, cursor, sink)
    feed.readers.add(reader)
    // The current slot comes round again after a whole heartbeat.
    this.#wheel[this.#tick]!.add(reader)
    if (cursor >= feed.head) reader.isLive = true
    else this.#queue.add(reader)
    return reader
  }

  #forget(reader: StreamReader): void {
    if (reader.isOver) return
    reader.isOver = true
    reader.isLive = false
    for (const slot of this.#wheel) slot.delete(reader)
    reader.feed.readers.delete(reader)
    if (reader.feed.isOver) this.#feeds.delete(tenantText(reader.tenant))
    if (this.#feeds.size === 0) for (const timer of this.#timers.splice(0)) clearInterval(timer)
  }

  #end(reader: StreamReader, reason: EndReason): void {
    this.#forget(reader)
    reader.end(reason)
  }

  *#readers(): Iterable<StreamReader> {
    for (const feed of this.#feeds.values()) yield* feed.readers
  }

  /** Queues the feeds that have new events, until the position of the index is reached. */
  async #settle(): Promise<void> {
    if (this.#settling) return
    this.#settling = true
    try {
      while (this.#settled < this.#position && this.#feeds.size > 0) {
        const upTo = this.#position
        const changed = await this.#changedFeeds(this.#settled, upTo)
        for (const [key, feed] of this.#feeds) {
          if (feed.advance(upTo, changed === null || changed.has(key))) this.#queue.add(feed)
        }
        this.#settled = Math.max(this.#settled, upTo)
      }
    } catch (error) {
      // The next tick tries again.
      this.#options.onTrouble('follow the index', error)
    } finally {
      this.#settling = false
    }
  }

  /** Null: unknown, so any feed may have new events. */
  async #changedFeeds(after: number, upTo: number): Promise<Set<string> | null> {
    if (this.#feeds.size <= FEW_FEEDS || upTo - after > MANY_IDS) return null
    return new Set((await this.#options.follower.tenantsBetween(after, upTo)).map(tenantText))
  }

  #startTimers(): void {
    const { pollEveryMs } = this.#options
    this.#timers.push(setInterval(() => this.#onTick(), this.#tickMs))
    if (pollEveryMs !== null) this.#timers.push(setInterval(() => void this.#poll(), pollEveryMs))
    for (const timer of this.#timers) timer.unref()
  }

  async #poll(): Promise<void> {
    if (this.#polling) return
    this.#polling = true
    try {
      this.wake((await this.#askHead()).indexed)
    } catch (error) {
      this.#options.onTrouble('read the position of the index', error)
    } finally {
      this.#polling = false
    }
  }

  #onTick(): void {
    this.#tick = (this.#tick + 1) % this.#wheel.length
    for (const reader of this.#readers()) {
      if (reader.fullTicks !== null && ++reader.fullTicks > this.#drainTicks) this.#end(reader, 'slow_reader')
      else this.#checkRevocation(reader)
    }
    // A connection that is full has bytes in flight, so it needs no heartbeat.
    for (const reader of this.#wheel[this.#tick]!) if (reader.fullTicks === null) reader.write(this.#options.heartbeat)
    this.#queue.retry()
    if (this.#settled < this.#position) void this.#settle()
  }

  #checkRevocation(reader: StreamReader): void {
    const judge = (problem: Problem | null) => {
      if (problem && !reader.isOver) this.#end(reader, problem.code as EndReason)
    }
    const found = this.#options.revocation(reader.keyId)
    if (found instanceof Promise) void found.then(judge)
    else judge(found)
  }
}

const STOPPING: Problem = {
  code: 'shutting_down',
  message: 'This server is stopping. Open the stream again after Retry-After seconds.',
}
const TOO_MANY: Problem = {
  code: 'overloaded',
  message:
    'Too many streams are open, on this node or for this tenant. Close some, or try again after Retry-After seconds.',
}

// The readers of one tenant's events on this node, and how each gets every event once, in order.
//
//   behind ──(its own pages reach the head)──► live ──(its connection is full)──► full ──(drained)──► behind
//
// Live readers share one reading of the store and one rendering of each event. One that is behind reads pages of its own,
// from its own cursor; one that is full reads nothing. Whatever state it is in, a reader takes only what is above its
// cursor and moves it as it takes: so going from one state to another skips nothing and repeats nothing.

import type { FollowedEvent } from '../model/followed-event.ts'
import type { Tenant } from '../model/principal.ts'
import type { FollowedPage } from '../store/contract/follow.ts'

/** What a stream is written to. */
export interface Sink {
  /** False if it is full now: it takes nothing more until it says that it has drained. */
  write(text: string): boolean
  end(reason: EndReason): void
}

export type EndReason =
  | 'stopping'
  | 'slow_reader'
  | 'token_disabled'
  | 'token_expired'
  | 'invalid_token'
  | 'not_signed_in'

/** An event as it is written to a stream. */
export type Render = (event: FollowedEvent) => string

/** Something that reads pages from the store, one at a time, in its turn. */
export interface PageReader {
  readonly tenant: Tenant
  readonly cursor: number
  /** Nobody is there for it any more. */
  readonly isOver: boolean
  /** How many rows it can make use of. */
  readonly pageRows: number
  /** It waits for its turn, or has it. */
  queued: boolean
  /** True if there is more to read at once. Null if nothing came where something should: look again later. */
  take(page: FollowedPage, render: Render): boolean | null
}

const PAGE_ROWS = 200
/** One write takes about this much: a call for each event would cost more than the event. */
const WRITE_CHARACTERS = 16_384
/** As much of a page is kept for a reader whose connection is full, so that it need not be read again. */
const KEPT_CHARACTERS = 262_144

interface Frame {
  readonly id: number
  readonly text: string
}

export class StreamReader implements PageReader {
  readonly feed: TenantFeed
  readonly keyId: string
  readonly #sink: Sink
  /** Everything of the tenant up to here was written. */
  cursor: number
  queued = false
  isOver = false
  isLive = false
  pageRows = PAGE_ROWS
  /** What was read for it and did not fit. */
  #kept: readonly Frame[] = []
  /** Since when the connection takes nothing more, by the monotonic clock; null while it does. */
  fullSince: number | null = null

  constructor(feed: TenantFeed, keyId: string, cursor: number, sink: Sink) {
    this.feed = feed
    this.keyId = keyId
    this.cursor = cursor
    this.#sink = sink
  }

  get tenant(): Tenant {
    return this.feed.tenant
  }

  take(page: FollowedPage, render: Render): boolean | null {
    // It has filled up since it asked: once drained it asks again, from where it is.
    if (this.fullSince !== null) return false
    const before = this.cursor
    const frames = framesOf(page, render)
    const characters = frames.reduce((sum, { text }) => sum + text.length, 0)
    // The next page is as large as can be kept, should nothing of it fit.
    const rowsKept = characters === 0 ? PAGE_ROWS : Math.floor((KEPT_CHARACTERS * frames.length) / characters)
    this.pageRows = Math.max(1, Math.min(PAGE_ROWS, rowsKept))
    if (!this.writeFrames(frames)) {
      this.#kept = characters <= KEPT_CHARACTERS ? frames.filter(({ id }) => id > this.cursor) : []
      return false
    }
    this.cursor = Math.max(this.cursor, page.through)
    this.isLive = this.cursor >= this.feed.head
    if (this.isLive) return false
    return this.cursor > before ? true : null
  }

  /** Writes what is above the cursor. False if the connection filled up: what is left is read again when it has drained. */
  writeFrames(frames: readonly Frame[]): boolean {
    const from = this.cursor
    let text = ''
    for (const frame of frames) {
      if (frame.id <= from) continue
      text += frame.text
      this.cursor = frame.id
      if (text.length < WRITE_CHARACTERS) continue
      if (!this.write(text)) return false
      text = ''
    }
    return text === '' || this.write(text)
  }

  /** The connection takes more. True if all that was kept fitted: then it can read on. */
  drained(): boolean {
    this.fullSince = null
    const kept = this.#kept
    this.#kept = []
    if (this.writeFrames(kept)) return true
    this.#kept = kept.filter(({ id }) => id > this.cursor)
    return false
  }

  write(text: string): boolean {
    const takesMore = this.#sink.write(text)
    if (!takesMore) {
      this.isLive = false
      this.fullSince ??= performance.now()
    }
    return takesMore
  }

  end(reason: EndReason): void {
    this.#sink.end(reason)
  }
}

export class TenantFeed implements PageReader {
  readonly tenant: Tenant
  readonly readers = new Set<StreamReader>()
  readonly pageRows = PAGE_ROWS
  queued = false
  /** Live readers have everything up to here. */
  #head: number
  /** There may be something for the tenant up to here that live readers have not got. */
  #wanted: number

  constructor(tenant: Tenant, head: number) {
    this.tenant = tenant
    this.#head = head
    this.#wanted = head
  }

  get head(): number {
    return this.#head
  }

  get cursor(): number {
    return this.#head
  }

  get isOver(): boolean {
    return this.readers.size === 0
  }

  /** The index has come to this id. True if the feed has to read; if not, nothing was there for it. */
  advance(throughId: number, maybeSomething: boolean): boolean {
    if (throughId <= this.#head) return false
    if (this.#head >= this.#wanted && !(maybeSomething && this.#hasLive())) {
      // Readers that are not live go on from their own cursors, up to the head, wherever it is.
      this.#head = this.#wanted = throughId
      return false
    }
    if (maybeSomething) this.#wanted = Math.max(this.#wanted, throughId)
    return this.#head < this.#wanted
  }

  take(page: FollowedPage, render: Render): boolean | null {
    const before = this.#head
    const frames = framesOf(page, render)
    for (const reader of this.readers) if (reader.isLive) reader.writeFrames(frames)
    this.#head = Math.max(this.#head, page.through)
    if (this.#head >= this.#wanted) return false
    return this.#head > before ? true : null
  }

  #hasLive(): boolean {
    for (const reader of this.readers) if (reader.isLive) return true
    return false
  }
}

function framesOf(page: FollowedPage, render: Render): Frame[] {
  return page.events.map((event) => ({ id: event.id, text: render(event) }))
}

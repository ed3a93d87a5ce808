// The stream readers of one tenant on this node. Each gets every event once, in order.
//
//   behind ──(its own pages reach the head)──► live ──(its connection is full)──► full ──(drained)──► behind
//
// Live readers share one read of the store and one rendering of each event. A reader that is behind reads pages of its own,
// from its own cursor; a full reader reads nothing. In every state a reader takes only events above its cursor and advances
// the cursor with them: so a change of state neither skips nor repeats an event.

import type { FollowedEvent } from '../model/followed-event.ts'
import type { Tenant } from '../model/principal.ts'
import type { FollowedPage } from '../store/contract/follow.ts'

/** The connection that a stream writes to. */
export interface Sink {
  /** False if the connection is full: write again only after it has drained. */
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

/** Renders an event as the text of a stream. */
export type Render = (event: FollowedEvent) => string

/** Reads pages from the store, one per turn (page-queue.ts). */
export interface PageReader {
  readonly tenant: Tenant
  readonly cursor: number
  /** It needs no more pages. */
  readonly isOver: boolean
  /** Rows of its next page. */
  readonly pageRows: number
  /** It waits for its turn or reads. */
  queued: boolean
  /** True: read the next page at once. False: finished for now. Null: the page had no progress; try again later. */
  take(page: FollowedPage, render: Render): boolean | null
}

const PAGE_ROWS = 200
/** Size of one write: a system call for each event would cost more than the event. */
const WRITE_CHARACTERS = 16_384
/** Buffered for a reader whose connection is full, so that it need not read the page again. */
const BUFFER_CHARACTERS = 262_144

interface Frame {
  readonly id: number
  readonly text: string
}

export class StreamReader implements PageReader {
  readonly feed: TenantFeed
  readonly keyId: string
  readonly #sink: Sink
  /** All events of the tenant up to here were written. */
  cursor: number
  queued = false
  isOver = false
  isLive = false
  pageRows = PAGE_ROWS
  /** Events that were read and did not fit into the connection. */
  #buffered: readonly Frame[] = []
  /** Ticks of the hub since the connection filled up; null while it has room. */
  fullTicks: number | null = null

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
    // The connection filled up after the read began: once drained, the reader reads again from its cursor.
    if (this.fullTicks !== null) return false
    const before = this.cursor
    const frames = framesOf(page, render)
    const characters = frames.reduce((sum, { text }) => sum + text.length, 0)
    // Sized so that the buffer can hold the whole next page.
    const rowsBuffered = characters === 0 ? PAGE_ROWS : Math.floor((BUFFER_CHARACTERS * frames.length) / characters)
    this.pageRows = Math.max(1, Math.min(PAGE_ROWS, rowsBuffered))
    if (!this.writeFrames(frames)) {
      this.#buffered = characters <= BUFFER_CHARACTERS ? frames.filter(({ id }) => id > this.cursor) : []
      return false
    }
    this.cursor = Math.max(this.cursor, page.through)
    this.isLive = this.cursor >= this.feed.head
    if (this.isLive) return false
    return this.cursor > before ? true : null
  }

  /** Writes the frames above the cursor. False if the connection filled up: the rest is written or read again once it drained. */
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

  /** After the connection drained. True if the whole buffer was written: the reader can read on. */
  drained(): boolean {
    this.fullTicks = null
    const buffered = this.#buffered
    this.#buffered = []
    if (this.writeFrames(buffered)) return true
    this.#buffered = buffered.filter(({ id }) => id > this.cursor)
    return false
  }

  write(text: string): boolean {
    const hasRoom = this.#sink.write(text)
    if (!hasRoom) {
      this.isLive = false
      this.fullTicks ??= 0
    }
    return hasRoom
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
  /** Live readers have all events up to here. */
  #head: number
  /** Events that live readers do not have yet may exist up to here. */
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

  /** The index has reached this id. True if the feed has to read. */
  advance(throughId: number, mayHaveEvents: boolean): boolean {
    if (throughId <= this.#head) return false
    if (this.#head >= this.#wanted && !(mayHaveEvents && this.#hasLive())) {
      // Readers that are not live continue from their own cursors, so the head may move without them.
      this.#head = this.#wanted = throughId
      return false
    }
    if (mayHaveEvents) this.#wanted = Math.max(this.#wanted, throughId)
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

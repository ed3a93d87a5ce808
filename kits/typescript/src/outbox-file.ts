// The outbox in an append-only file, for runtimes without node:sqlite. It belongs to one process, by a lock file. Every change
// is a line; send() resolves after the sync that covers its line. What a crash left half written at the end is cut off: its
// send() has not resolved. The file is rewritten without what was sent once that is most of it.

import { copyFileSync } from 'node:fs'
import { LineFile } from './line-file.ts'
import { LockFile } from './lock-file.ts'
import { type Entry, OutboxLanes } from './outbox-lanes.ts'
import type { NewMessage, Outbox, OutboxCounts, OutboxRow } from './outbox.ts'

/** Below this size the file is not rewritten. */
const COMPACT_FROM_BYTES = 1_048_576

/** Where the line with the body is. */
interface FileEntry extends Entry {
  offset: number
  length: number
}

/** A line: a new message, or a row's new state. */
interface AddLine extends Omit<NewMessage, 'body'> {
  readonly add: number
  readonly created_at: number
  readonly body: string
}
interface StateLine {
  readonly id: number
  readonly status: 'waiting' | 'sent' | 'refused'
  readonly attempts: number
  readonly next_at: number | null
  readonly last_error: string | null
}

export interface FileOutboxOptions {
  /** Told if lines in the middle of the file cannot be read; a copy of the file is kept. */
  readonly onDamage?: (message: string) => void
  readonly compactFromBytes?: number
}

export class FileOutbox implements Outbox {
  readonly #path: string
  readonly #lock: LockFile
  readonly #file: LineFile
  readonly #options: FileOutboxOptions
  readonly #lanes = new OutboxLanes<FileEntry>()
  /** Waiting and refused rows, by id. */
  readonly #rows = new Map<number, FileEntry>()
  #refusedCount = 0
  #lastId = 0
  /** Of the lines that hold rows of #rows. */
  #liveBytes = 0
  /** The file's size when it was last rewritten. */
  #compactSize = 0

  private constructor(path: string, lock: LockFile, file: LineFile, options: FileOutboxOptions) {
    this.#path = path
    this.#lock = lock
    this.#file = file
    this.#options = options
  }

  static async open(path: string, options: FileOutboxOptions = {}): Promise<FileOutbox> {
    const lock = new LockFile(`${path}.lock`)
    try {
      const file = await LineFile.open(path)
      const outbox = new FileOutbox(path, lock, file, options)
      await outbox.#load()
      file.onWritten = () => outbox.#compactIfMostlySent()
      return outbox
    } catch (error) {
      lock.release()
      throw error
    }
  }

  async add(message: NewMessage, now: number): Promise<void> {
    const { source_ref, channel_ref, traceparent, body } = message
    const id = ++this.#lastId
    const text = Buffer.from(body).toString('utf8')
    const line = lineOf({ add: id, source_ref, channel_ref, traceparent, created_at: now, body: text })
    await this.#file.append(line, (offset) => {
      this.#insert({ ...newEntry(id, message, now), offset, length: line.length })
      this.#lanes.add(this.#rows.get(id)!, now)
    })
  }

  async claim(limit: number, now: number): Promise<readonly OutboxRow[]> {
    const entries = this.#lanes.claim(limit, now)
    return Promise.all(entries.map((entry) => this.#read(entry)))
  }

  async sent(row: OutboxRow, now: number): Promise<void> {
    const entry = this.#rows.get(row.id)
    if (!entry) return
    await this.#file.append(stateLine(entry, 'sent', null, null), () => {
      if (entry.status === 'refused') this.#refusedCount -= 1
      else this.#lanes.remove(entry, now)
      this.#liveBytes -= entry.length
      this.#rows.delete(entry.id)
    })
  }

  async retry(row: OutboxRow, nextAt: number, error: string, now: number): Promise<void> {
    const entry = this.#claimed(row)
    if (!entry) return
    await this.#file.append(stateLine(entry, 'waiting', nextAt, error), () => {
      entry.last_error = error
      this.#lanes.retry(entry, nextAt, now)
    })
  }

  async refused(row: OutboxRow, error: string, now: number): Promise<void> {
    const entry = this.#claimed(row)
    if (!entry) return
    await this.#file.append(stateLine(entry, 'refused', null, error), () => {
      this.#lanes.remove(entry, now)
      entry.status = 'refused'
      entry.last_error = error
      this.#refusedCount += 1
    })
  }

  async resend(id: number, now: number): Promise<boolean> {
    const entry = this.#rows.get(id)
    if (entry?.status !== 'refused') return false
    await this.#file.append(stateLine(entry, 'waiting', now, entry.last_error), () => {
      if (entry.status !== 'refused') return
      this.#refusedCount -= 1
      this.#lanes.add(entry, now)
    })
    return true
  }

  /** In memory alone: the next process that opens the file corrects them again. */
  async correctTimes(latest: number, now: number): Promise<void> {
    for (const entry of this.#rows.values()) {
      if (entry.status === 'waiting' && (entry.next_at ?? 0) > latest) this.#lanes.retry(entry, now, now)
    }
  }

  nextAt(): number | null {
    return this.#lanes.nextAt()
  }

  counts(): OutboxCounts {
    let oldest: number | null = null
    for (const { status, created_at } of this.#rows.values()) {
      if (status !== 'waiting') continue
      oldest = created_at
      break
    }
    return { waiting: this.#rows.size - this.#refusedCount, refused: this.#refusedCount, oldest_at: oldest }
  }

  async listRefused(afterId: number, limit: number): Promise<readonly OutboxRow[]> {
    const entries = [...this.#rows.values()].filter(({ id, status }) => status === 'refused' && id > afterId)
    return Promise.all(entries.slice(0, limit).map((entry) => this.#read(entry)))
  }

  /** What was sent leaves the file when it is rewritten. */
  async prune(): Promise<void> {}

  async close(): Promise<void> {
    await this.#file.close()
    this.#lock.release()
  }

  #claimed(row: OutboxRow): FileEntry | null {
    const entry = this.#rows.get(row.id)
    return entry?.status === 'waiting' && entry.claimed_until === row.claimed_until ? entry : null
  }

  #insert(entry: FileEntry): void {
    this.#rows.set(entry.id, entry)
    this.#liveBytes += entry.length
  }

  async #read(entry: FileEntry): Promise<OutboxRow> {
    const { offset, length, ...row } = entry
    const { body } = JSON.parse(await this.#file.read(offset, length)) as AddLine
    return { ...row, body: Buffer.from(body) }
  }

  async #compactIfMostlySent(): Promise<void> {
    const { compactFromBytes = COMPACT_FROM_BYTES, onDamage } = this.#options
    const { size } = this.#file
    if (size < Math.max(compactFromBytes, 2 * this.#compactSize) || this.#liveBytes * 2 >= size) return
    // The old file is as good.
    await this.#compact().catch((error: Error) => onDamage?.(error.message))
  }

  /** Rewrites the file without the rows that were sent. */
  async #compact(): Promise<void> {
    const entries = [...this.#rows.values()]
    const offsets: number[] = []
    let size = 0
    const linesOf = async (entry: FileEntry): Promise<Buffer> => {
      const line = Buffer.from(await this.#file.read(entry.offset, entry.length))
      // Claims end with the process that owns the file.
      const nextAt = entry.claimed_until > 0 ? null : entry.next_at
      const isNew = entry.status === 'waiting' && entry.attempts === 0
      const lines = isNew ? line : Buffer.concat([line, stateLine(entry, entry.status, nextAt, entry.last_error)])
      offsets.push(size)
      size += lines.length
      return lines
    }
    await this.#file.rewrite(entries, linesOf)
    for (const [n, entry] of entries.entries()) entry.offset = offsets[n]!
    this.#compactSize = size
  }

  async #load(): Promise<void> {
    let badLines = 0
    let end = 0
    let badInMiddle = 0
    for await (const { text, offset, length } of this.#file.lines()) {
      if (!this.#replay(text, offset, length)) {
        badLines += 1
        continue
      }
      badInMiddle = badLines
      end = offset + length
    }
    if (badInMiddle > 0) {
      const copy = `${this.#path}.damaged-${Date.now()}`
      copyFileSync(this.#path, copy)
      this.#options.onDamage?.(`${badInMiddle} lines of ${this.#path} cannot be read. ${copy} is a copy of the file.`)
    }
    await this.#file.cut(end)
    // Lanes are made when all states are known: a channel's order is that of its ids.
    for (const entry of this.#rows.values()) {
      if (entry.status === 'waiting') this.#lanes.add(entry, entry.next_at ?? entry.created_at)
      else this.#refusedCount += 1
    }
    if (badInMiddle > 0) await this.#compact()
  }

  #replay(text: string, offset: number, length: number): boolean {
    let line: AddLine | StateLine
    try {
      line = JSON.parse(text) as AddLine | StateLine
    } catch {
      return false
    }
    if ('add' in line) {
      this.#insert({ ...newEntry(line.add, line, line.created_at), offset, length })
      this.#lastId = Math.max(this.#lastId, line.add)
      return true
    }
    const entry = this.#rows.get(line.id)
    if (!entry) return typeof line.id === 'number'
    if (line.status === 'sent') {
      this.#liveBytes -= entry.length
      this.#rows.delete(line.id)
    } else {
      const { status, attempts, next_at, last_error } = line
      Object.assign(entry, { status, attempts, next_at, last_error })
    }
    return true
  }
}

function newEntry(id: number, message: Omit<NewMessage, 'body'>, createdAt: number): Entry {
  return {
    id,
    source_ref: message.source_ref,
    channel_ref: message.channel_ref,
    traceparent: message.traceparent,
    created_at: createdAt,
    attempts: 0,
    next_at: null,
    claimed_until: 0,
    status: 'waiting',
    last_error: null,
  }
}

function lineOf(value: AddLine | StateLine): Buffer {
  return Buffer.from(`${JSON.stringify(value)}\n`)
}

function stateLine(entry: Entry, status: StateLine['status'], nextAt: number | null, error: string | null): Buffer {
  return lineOf({ id: entry.id, status, attempts: entry.attempts, next_at: nextAt, last_error: error })
}

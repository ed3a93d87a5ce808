// The outbox in an append-only file, for runtimes without node:sqlite. It belongs to one process, by a lock file. Every change
// is a line; send() resolves after the sync that covers its line. What a crash left half written at the end is cut off: nobody
// was told that it is kept. The file is rewritten without what was sent once that is most of it.

import { copyFileSync } from 'node:fs'
import { type FileHandle, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { LockFile } from './lock-file.ts'
import { type Entry, OutboxLanes } from './outbox-lanes.ts'
import type { NewMessage, Outbox, OutboxCounts, OutboxRow } from './outbox.ts'

/** Below this size the file is not rewritten. */
const COMPACT_FROM_BYTES = 1_048_576
const READ_BYTES = 1_048_576

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

interface Write {
  readonly line: Buffer
  /** Called when the line is on disk, with its place. */
  readonly apply: (offset: number) => void
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

export interface FileOutboxOptions {
  /** Told if lines in the middle of the file cannot be read; a copy of the file is kept. */
  readonly onDamage?: (message: string) => void
  readonly compactFromBytes?: number
}

export class FileOutbox implements Outbox {
  readonly #path: string
  readonly #lock: LockFile
  readonly #options: FileOutboxOptions
  readonly #lanes = new OutboxLanes<FileEntry>()
  /** Waiting and refused rows, by id. */
  readonly #rows = new Map<number, FileEntry>()
  #refusedCount = 0
  #lastId = 0
  #size = 0
  /** What the file had after it was last rewritten. */
  #compactSize = 0
  /** Of the lines that hold rows of #rows. */
  #liveBytes = 0
  #file: FileHandle
  #writes: Write[] = []
  #writing: Promise<void> | null = null

  private constructor(path: string, lock: LockFile, file: FileHandle, options: FileOutboxOptions) {
    this.#path = path
    this.#lock = lock
    this.#file = file
    this.#options = options
  }

  static async open(path: string, options: FileOutboxOptions = {}): Promise<FileOutbox> {
    const lock = new LockFile(`${path}.lock`)
    try {
      const file = await openOrCreate(path)
      const outbox = new FileOutbox(path, lock, file, options)
      await outbox.#load()
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
    await this.#write(line, (offset) => {
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
    await this.#write(stateLine(entry, 'sent', null, null), () => {
      if (entry.status === 'refused') this.#refusedCount -= 1
      else this.#lanes.remove(entry, now)
      this.#liveBytes -= entry.length
      this.#rows.delete(entry.id)
    })
  }

  async retry(row: OutboxRow, nextAt: number, error: string, now: number): Promise<void> {
    const entry = this.#claimed(row)
    if (!entry) return
    await this.#write(stateLine(entry, 'waiting', nextAt, error), () => {
      entry.last_error = error
      this.#lanes.retry(entry, nextAt, now)
    })
  }

  async refused(row: OutboxRow, error: string, now: number): Promise<void> {
    const entry = this.#claimed(row)
    if (!entry) return
    await this.#write(stateLine(entry, 'refused', null, error), () => {
      this.#lanes.remove(entry, now)
      entry.status = 'refused'
      entry.last_error = error
      this.#refusedCount += 1
    })
  }

  async resend(id: number, now: number): Promise<boolean> {
    const entry = this.#rows.get(id)
    if (entry?.status !== 'refused') return false
    await this.#write(stateLine(entry, 'waiting', now, entry.last_error), () => {
      if (entry.status !== 'refused') return
      this.#refusedCount -= 1
      this.#lanes.add(entry, now)
    })
    return true
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
    while (this.#writing) await this.#writing
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
    // The file may be replaced between two reads, but not during one: the handle goes with the place.
    const { offset, length, ...row } = entry
    const { body } = JSON.parse(await readText(this.#file, offset, length)) as AddLine
    return { ...row, body: Buffer.from(body) }
  }

  #write(line: Buffer, apply: (offset: number) => void): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#writes.push({ line, apply, resolve, reject })
      this.#writing ??= this.#writeAll().finally(() => (this.#writing = null))
    })
  }

  /** Group commit: everything that waits shares a write and its sync. */
  async #writeAll(): Promise<void> {
    while (this.#writes.length > 0) {
      const batch = this.#writes
      this.#writes = []
      try {
        const bytes = Buffer.concat(batch.map(({ line }) => line))
        await writeFully(this.#file, bytes, this.#size)
        await this.#file.datasync()
      } catch (error) {
        await this.#file.truncate(this.#size).catch(() => {})
        for (const { reject } of batch) reject(error)
        continue
      }
      for (const { line, apply, resolve } of batch) {
        apply(this.#size)
        this.#size += line.length
        resolve()
      }
      if (this.#isMostlySent()) await this.#compact().catch((error: Error) => this.#options.onDamage?.(error.message))
    }
  }

  #isMostlySent(): boolean {
    const { compactFromBytes = COMPACT_FROM_BYTES } = this.#options
    return this.#size >= Math.max(compactFromBytes, 2 * this.#compactSize) && this.#liveBytes * 2 < this.#size
  }

  /** Writes the rows that are not sent into a new file, which then takes the place of the old one. */
  async #compact(): Promise<void> {
    const next = `${this.#path}.next`
    const file = await open(next, 'w+', 0o600)
    const places: { entry: FileEntry; offset: number }[] = []
    let size = 0
    try {
      for (const entry of this.#rows.values()) {
        const line = Buffer.from(await readText(this.#file, entry.offset, entry.length))
        const isNew = entry.status === 'waiting' && entry.attempts === 0
        // Claims end with the process that owns the file.
        const nextAt = entry.claimed_until > 0 ? null : entry.next_at
        const both = isNew ? line : Buffer.concat([line, stateLine(entry, entry.status, nextAt, entry.last_error)])
        await writeFully(file, both, size)
        places.push({ entry, offset: size })
        size += both.length
      }
      await file.sync()
      await rename(next, this.#path)
      await syncFolder(dirname(this.#path))
    } catch (error) {
      await file.close()
      await rm(next, { force: true })
      throw error
    }
    const old = this.#file
    this.#file = file
    this.#size = size
    this.#compactSize = size
    for (const { entry, offset } of places) entry.offset = offset
    await old.close()
  }

  async #load(): Promise<void> {
    let badLines = 0
    let end = 0
    let badInMiddle = 0
    for await (const { text, offset, length } of linesOf(this.#file)) {
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
    await this.#file.truncate(end)
    await this.#file.sync()
    this.#size = end
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

async function openOrCreate(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'r+')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    const file = await open(path, 'wx+', 0o600)
    await syncFolder(dirname(path))
    return file
  }
}

/** So that a file's name survives a power cut as its content does. */
async function syncFolder(path: string): Promise<void> {
  if (process.platform === 'win32') return
  const folder = await open(path, 'r')
  await folder.sync().finally(() => folder.close())
}

async function writeFully(file: FileHandle, bytes: Buffer, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, position + done)
    done += bytesWritten
  }
}

async function readText(file: FileHandle, offset: number, length: number): Promise<string> {
  const bytes = Buffer.alloc(length)
  for (let done = 0; done < length; ) {
    const { bytesRead } = await file.read(bytes, done, length - done, offset + done)
    if (bytesRead === 0) throw new Error('The outbox file is shorter than what was written to it.')
    done += bytesRead
  }
  return bytes.toString('utf8')
}

/** The complete lines of a file, with their places. */
async function* linesOf(file: FileHandle): AsyncGenerator<{ text: string; offset: number; length: number }> {
  let rest: Buffer[] = []
  let restOffset = 0
  let position = 0
  const chunk = Buffer.alloc(READ_BYTES)
  for (;;) {
    const { bytesRead } = await file.read(chunk, 0, READ_BYTES, position)
    if (bytesRead === 0) return
    let from = 0
    for (let at = chunk.indexOf(10); at >= 0 && at < bytesRead; at = chunk.indexOf(10, from)) {
      rest.push(Buffer.from(chunk.subarray(from, at + 1)))
      const line = Buffer.concat(rest)
      yield { text: line.toString('utf8'), offset: restOffset, length: line.length }
      rest = []
      from = at + 1
      restOffset = position + from
    }
    rest.push(Buffer.from(chunk.subarray(from, bytesRead)))
    position += bytesRead
  }
}

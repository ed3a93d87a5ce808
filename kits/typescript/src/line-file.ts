// A file of lines that is only appended to, with group commit: what is appended at the same time shares a write and its sync. Can
// be replaced by a new version of itself in one step.

import { type FileHandle, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'

const READ_BYTES = 1_048_576

interface Write {
  readonly line: Buffer
  readonly apply: (offset: number) => void
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

export interface PlacedLine {
  readonly text: string
  readonly offset: number
  /** In bytes, with the line break. */
  readonly length: number
}

export class LineFile {
  readonly #path: string
  #file: FileHandle
  #size = 0
  #writes: Write[] = []
  #writing: Promise<void> | null = null
  /** Called after each write, before the next one: it may rewrite the file. Never rejects. */
  onWritten: () => Promise<void> = async () => {}

  private constructor(path: string, file: FileHandle) {
    this.#path = path
    this.#file = file
  }

  static async open(path: string): Promise<LineFile> {
    return new LineFile(path, await openOrCreate(path))
  }

  get size(): number {
    return this.#size
  }

  /** Resolves when the line is on disk. `apply` is called first, with its place, in the order of the lines. */
  append(line: Buffer, apply: (offset: number) => void): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#writes.push({ line, apply, resolve, reject })
      this.#writing ??= this.#writeAll()
    })
  }

  /** The place counts at the time of the call. */
  read(offset: number, length: number): Promise<string> {
    return readText(this.#file, offset, length)
  }

  /** The complete lines, with their places. */
  async *lines(): AsyncGenerator<PlacedLine> {
    const chunk = Buffer.alloc(READ_BYTES)
    let parts: Buffer[] = []
    let offset = 0
    for (let position = 0; ; ) {
      const { bytesRead } = await this.#file.read(chunk, 0, READ_BYTES, position)
      if (bytesRead === 0) return
      const bytes = chunk.subarray(0, bytesRead)
      let from = 0
      for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, from)) {
        parts.push(Buffer.from(bytes.subarray(from, end + 1)))
        const line = Buffer.concat(parts)
        yield { text: line.toString('utf8'), offset, length: line.length }
        parts = []
        from = end + 1
        offset = position + from
      }
      parts.push(Buffer.from(bytes.subarray(from)))
      position += bytesRead
    }
  }

  /** Drops what is behind `size`. Lines are appended there. */
  async cut(size: number): Promise<void> {
    await this.#file.truncate(size)
    await this.#file.sync()
    this.#size = size
  }

  /** Puts a file with these lines in the place of this one. If that fails, the file is as it was. */
  async rewrite<T>(items: readonly T[], linesOf: (item: T) => Promise<Buffer>): Promise<void> {
    const next = `${this.#path}.next`
    const file = await open(next, 'w+', 0o600)
    let size = 0
    try {
      for (const item of items) {
        const lines = await linesOf(item)
        await writeFully(file, lines, size)
        size += lines.length
      }
      await file.sync()
      await rename(next, this.#path)
    } catch (error) {
      await file.close()
      await rm(next, { force: true })
      throw error
    }
    const old = this.#file
    this.#file = file
    this.#size = size
    await old.close()
    await syncFolder(dirname(this.#path))
  }

  /** After all writes. */
  async close(): Promise<void> {
    while (this.#writing) await this.#writing
    await this.#file.close()
  }

  async #writeAll(): Promise<void> {
    while (this.#writes.length > 0) {
      const batch = this.#writes
      this.#writes = []
      try {
        await writeFully(this.#file, Buffer.concat(batch.map(({ line }) => line)), this.#size)
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
      await this.onWritten()
    }
    // In the same turn as the last look at #writes.
    this.#writing = null
  }
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

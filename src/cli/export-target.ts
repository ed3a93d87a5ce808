// Where an export is written: to stdout, or first beside its place as `.part`, with mode 600, synced, and renamed when it is whole.

import { createWriteStream, existsSync, openSync, renameSync, rmSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { syncPath } from '../runtime/sync-path.ts'
import { CommandError } from './command.ts'

/** For stdout. */
export const STDOUT = '-'

export type ExportChunks = AsyncIterable<string | Uint8Array>

/** Compressed if the name ends in .gz. Refuses a file that exists; leaves none behind if the export fails. */
export async function writeExport(file: string, chunks: ExportChunks): Promise<void> {
  if (file === STDOUT) {
    try {
      await pipeline(Readable.from(chunks), process.stdout, { end: false })
    } catch (error) {
      throw unwritten(error, 'The export on stdout is not whole')
    }
    return
  }
  refuseExisting(file)
  if (!existsSync(dirname(resolve(file))))
    throw new CommandError(`There is no folder ${dirname(file)}. Create it first.`)
  const part = `${file}.part`
  const fd = openPart(part)
  try {
    const out = createWriteStream(part, { fd, flush: true })
    const source = Readable.from(chunks)
    if (file.endsWith('.gz')) await pipeline(source, createGzip(), out)
    else await pipeline(source, out)
    refuseExisting(file)
    renameSync(part, file)
    syncPath(dirname(resolve(file)))
  } catch (error) {
    rmSync(part, { force: true })
    throw unwritten(error, `${file} was not written, and nothing is left of it`)
  }
}

/** A disk that is full, or a pipe that was closed, is no fault of the export. */
function unwritten(error: unknown, outcome: string): unknown {
  const { syscall, message } = error as NodeJS.ErrnoException
  return syscall === 'write' || syscall === 'fsync' ? new CommandError(`${outcome}: ${message}.`) : error
}

function refuseExisting(file: string): void {
  if (existsSync(file)) throw new CommandError(`${file} exists, and an export overwrites nothing. Give another name.`)
}

/** Refuses a part that is there: another export may be writing it. */
function openPart(part: string): number {
  try {
    return openSync(part, 'wx', 0o600)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw new CommandError(
      code === 'EEXIST'
        ? `${part} exists: another export writes it, or one was interrupted. If none runs, remove it.`
        : `${part} cannot be written: ${message}.`,
    )
  }
}

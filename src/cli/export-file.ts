// Opens a file that ./intray export wrote, to be read once.

import { createReadStream, statSync } from 'node:fs'
import { pipeline } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { CommandError } from './command.ts'

/** Of a compressed file: what stops the reading of its content. */
export class DamagedFile extends CommandError {}

export function exportChunks(file: string): AsyncIterable<Uint8Array> {
  try {
    if (!statSync(file).isFile()) throw new Error('it is no file')
  } catch (error) {
    throw new CommandError(`${file} cannot be read: ${(error as Error).message}.`)
  }
  const bytes = createReadStream(file)
  if (!file.endsWith('.gz')) return bytes
  const gunzip = createGunzip()
  // The reader of gunzip gets the error.
  pipeline(bytes, gunzip, () => {})
  return unpacked(gunzip)
}

async function* unpacked(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* chunks
  } catch (error) {
    if (!(error as NodeJS.ErrnoException).code?.startsWith('Z_')) throw error
    throw new DamagedFile(`The compressed file is damaged or cut off: ${(error as Error).message}.`)
  }
}

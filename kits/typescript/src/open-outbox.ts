// Opens the outbox at a path: in SQLite where the runtime has it, else in an append-only file. A file that is there decides.

import { closeSync, openSync, readSync } from 'node:fs'
import { FileOutbox } from './outbox-file.ts'
import type { Outbox } from './outbox.ts'
import { SqliteOutbox } from './outbox-sqlite.ts'

const SQLITE_HEADER = 'SQLite format 3\0'

export async function openOutbox(path: string, onDamage: (message: string) => void): Promise<Outbox> {
  const head = readHead(path)
  const sqlite = process.getBuiltinModule?.('node:sqlite')
  if (head === SQLITE_HEADER && !sqlite) {
    throw new Error(`The outbox ${path} is a SQLite file, which this Node cannot read. Use Node 22.13 or newer.`)
  }
  // An append-only file of an older Node is used as it is.
  if (sqlite && (head === '' || head === SQLITE_HEADER)) return new SqliteOutbox(sqlite, path)
  return FileOutbox.open(path, { onDamage })
}

function readHead(path: string): string {
  try {
    const file = openSync(path, 'r')
    const bytes = Buffer.alloc(SQLITE_HEADER.length)
    const length = readSync(file, bytes)
    closeSync(file)
    return bytes.toString('latin1', 0, length)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw error
  }
}

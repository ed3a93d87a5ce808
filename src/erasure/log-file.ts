// The erasure log as a file beside the backups: what a restored backup must lose again when the old database cannot be read. It
// holds ids, times and HMACs. Each state of a database has a file of its own, since ids of the log begin anew after a restore:
//
//   erasures-<key>-<database>-<epoch>.log     a header, then one line of JSON for each record, oldest first
//
// Two programs may append at once: a record that stands twice is carried out once.

import { type FileHandle, open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { ERASE_ROWS, type ErasureLogId, type ErasureRecord } from '../model/erasure.ts'
import { syncPath } from '../runtime/sync-path.ts'
import type { ErasureStore } from '../store/contract/erasures.ts'

const FORMAT = 'intray-erasures'
const VERSION = 1
/** More than the longest line. */
const TAIL_BYTES = 4096

/** A file of another kind, of another database, or with a damaged line. */
export class ErasureLogRefused extends Error {}

interface Header extends ErasureLogId {
  readonly format: string
  readonly version: number
}

const fileName = ({ key, database, epoch }: ErasureLogId): string => `erasures-${key}-${database}-${epoch}.log`

/** Appends what the file lacks, synced, and makes the file if there is none. Returns the id of its last record. */
export async function appendErasures(folder: string, erasures: Pick<ErasureStore, 'log' | 'logId'>): Promise<number> {
  const id = await erasures.logId()
  const path = join(folder, fileName(id))
  const file = await open(path, 'a+', 0o600)
  try {
    let last = await lastRecordOf(file, path)
    if (last === null) {
      await file.appendFile(lineOf({ format: FORMAT, version: VERSION, ...id }))
      last = 0
    }
    const before = last
    for (;;) {
      const page = await erasures.log(last, ERASE_ROWS)
      if (page.length === 0) break
      await file.appendFile(page.map((record) => lineOf(encode(record))).join(''))
      last = page.at(-1)!.id
    }
    if (last > before || before === 0) {
      await file.sync()
      syncPath(folder)
    }
    return last
  } finally {
    await file.close()
  }
}

/** The records of all files of this key in a folder. Refuses a folder without one. */
export async function* readErasuresIn(folder: string, key: string): AsyncGenerator<ErasureRecord> {
  const names = (await readdir(folder)).filter((name) => name.startsWith(`erasures-${key}-`) && name.endsWith('.log'))
  if (names.length === 0) {
    throw new ErasureLogRefused(`${folder} has no erasure log of the database that the backup was made of.`)
  }
  for (const name of names) yield* readErasures(join(folder, name), key)
}

export async function* readErasures(path: string, key: string): AsyncGenerator<ErasureRecord> {
  const file = await open(path, 'r')
  try {
    let number = 0
    let damaged: number | null = null
    for await (const line of file.readLines({ autoClose: false })) {
      // An append that was interrupted leaves a part of a line: as the last one only, since the next append removes it.
      if (damaged !== null) throw new ErasureLogRefused(`Line ${damaged} of ${path} is damaged.`)
      number += 1
      const value = parse(line)
      if (number === 1) requireHeader(value as Header | null, path, key)
      else if (value === null) damaged = number
      else yield decode(value as ReturnType<typeof encode>)
    }
    if (number === 0) throw new ErasureLogRefused(`${path} is empty: it is no erasure log.`)
  } finally {
    await file.close()
  }
}

function requireHeader(header: Header | null, path: string, key: string): void {
  if (header?.format !== FORMAT) throw new ErasureLogRefused(`${path} is no erasure log.`)
  if (header.version !== VERSION) throw new ErasureLogRefused(`${path} was written by another version of Intray.`)
  if (header.key !== key) {
    throw new ErasureLogRefused(`${path} is not of the database that the backup was made of.`)
  }
}

/** The id of the last record, 0 after the header; null: the file is empty. Removes a line that was not written to its end. */
async function lastRecordOf(file: FileHandle, path: string): Promise<number | null> {
  const { size } = await file.stat()
  const from = Math.max(0, size - TAIL_BYTES)
  const { buffer, bytesRead } = await file.read(Buffer.alloc(size - from), 0, size - from, from)
  const tail = buffer.subarray(0, bytesRead)
  const end = tail.lastIndexOf('\n') + 1
  if (from + end < size) await file.truncate(from + end)
  if (end === 0) {
    if (from > 0) throw new ErasureLogRefused(`The end of ${path} is damaged.`)
    return null
  }
  const line = tail.subarray(tail.lastIndexOf('\n', end - 2) + 1, end - 1).toString()
  const value = parse(line) as { readonly id?: number; readonly format?: string } | null
  if (value?.format === FORMAT) return 0
  if (value?.id === undefined) throw new ErasureLogRefused(`The last line of ${path} is damaged.`)
  return value.id
}

function encode({ id, companyId, accountId, eventId, erasedAt, digest, bytes }: ErasureRecord) {
  return {
    ...{ id, company_id: companyId, account_id: accountId, event_id: eventId, erased_at: erasedAt },
    ...{ digest: digest === null ? null : hex(digest), bytes: hex(bytes) },
  }
}

function decode(line: ReturnType<typeof encode>): ErasureRecord {
  const { id, company_id: companyId, account_id: accountId, event_id: eventId, erased_at: erasedAt } = line
  const digest = line.digest === null ? null : Buffer.from(line.digest, 'hex')
  return { id, companyId, accountId, eventId, erasedAt, digest, bytes: Buffer.from(line.bytes, 'hex') }
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')

const lineOf = (value: object): string => `${JSON.stringify(value)}\n`

function parse(line: string): object | null {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' ? value : null
  } catch {
    return null
  }
}

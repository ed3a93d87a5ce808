// Damage below the service: a flipped bit in the database file, or a column that somebody or something changed.
// Promises: on SQLite a payload is flipped in the file itself, at a place that holds that payload's bytes and nothing else;
// on PostgreSQL through SQL, since its pages compress large payloads. The service must not be running.

import { closeSync, existsSync, fsyncSync, openSync, readFileSync, statSync, writeSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { withClient } from '../test/support/postgres/databases.ts'
import type { Random } from './random.ts'

type Value = string | number | null | Uint8Array
type Row = Record<string, Value>

const WINDOW = 24
const TRIES = 300

export class Damage {
  readonly #url: string
  readonly #random: Random
  /** The database file, as it was read once; null where there is none. */
  #file: Buffer | null = null

  constructor(databaseUrl: string, random: Random) {
    this.#url = databaseUrl
    this.#random = random
  }

  /** Flips one bit of a stored payload. False where no place in the file is that payload's alone. */
  async flipPayload(id: number, payload: Buffer): Promise<boolean> {
    if (!this.#isFile) {
      await this.change('events', 'payload', id, (value) => this.#flipped(value as Uint8Array))
      return true
    }
    const file = (this.#file ??= this.#readFile())
    for (let tried = 0; tried < TRIES; tried += 1) {
      const start = this.#random.below(Math.max(1, payload.length - WINDOW))
      const window = payload.subarray(start, start + WINDOW)
      const at = file.indexOf(window)
      if (at === -1 || file.indexOf(window, at + 1) !== -1) continue
      const place = at + this.#random.below(window.length)
      const byte = Buffer.from([file[place]! ^ (1 << this.#random.below(8))])
      file[place] = byte[0]!
      const target = openSync(this.#path, 'r+')
      writeSync(target, byte, 0, 1, place)
      fsyncSync(target)
      closeSync(target)
      return true
    }
    return false
  }

  /** Changes one column of the row of an event. */
  async change(table: 'events' | 'dedupe', column: string, id: number, how: (value: Value) => Value): Promise<void> {
    const key = table === 'events' ? 'id' : 'event_id'
    const [row] = await this.#run(`SELECT ${column} AS value FROM ${table} WHERE ${key} = ?`, [id])
    if (!row) throw new Error(`${table} has no row of event ${id}`)
    await this.#run(`UPDATE ${table} SET ${column} = ? WHERE ${key} = ?`, [how(row.value!), id])
  }

  /** The bytes as any program reads them that knows nothing of digests. */
  async readUnchecked(id: number): Promise<Buffer> {
    const [row] = await this.#run('SELECT payload AS value FROM events WHERE id = ?', [id])
    return Buffer.from(row!.value as Uint8Array)
  }

  flipped = (value: Value): Value =>
    typeof value === 'number'
      ? value + 1
      : typeof value === 'string'
        ? `${value.slice(0, -1)}${String.fromCharCode(value.charCodeAt(value.length - 1) ^ 1)}`
        : this.#flipped(value as Uint8Array)

  #flipped(bytes: Uint8Array): Uint8Array {
    const copy = Buffer.from(bytes)
    const at = this.#random.below(copy.length)
    copy[at] = copy[at]! ^ (1 << this.#random.below(8))
    return copy
  }

  get #isFile(): boolean {
    return this.#url.startsWith('sqlite:')
  }

  get #path(): string {
    return this.#url.slice('sqlite:'.length)
  }

  #readFile(): Buffer {
    this.#tidy()
    const wal = `${this.#path}-wal`
    // What is in the WAL would win over what we flip in the file.
    if (existsSync(wal) && statSync(wal).size > 0) throw new Error('the WAL was not written back')
    return readFileSync(this.#path)
  }

  /** Each payload in one place: its own row, and no page that was freed. */
  #tidy(): void {
    const db = new DatabaseSync(this.#path, { timeout: 5000 })
    try {
      db.exec('VACUUM; PRAGMA wal_checkpoint(TRUNCATE)')
    } finally {
      db.close()
    }
  }

  #run(sql: string, values: readonly Value[]): Promise<Row[]> {
    if (this.#isFile) {
      const db = new DatabaseSync(this.#path, { timeout: 5000 })
      try {
        const rows = db.prepare(sql).all(...values) as Row[]
        return Promise.resolve(rows)
      } finally {
        db.close()
      }
    }
    let n = 0
    const own = sql.replace(/\?/g, () => `$${++n}`).replace(/(FROM|UPDATE) (\w+)/, '$1 intray.$2')
    return withClient(this.#url, async (client) => (await client.query(own, [...values])).rows as Row[])
  }
}

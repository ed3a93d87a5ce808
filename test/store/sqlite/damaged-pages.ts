// Overwrites pages of a SQLite file that nobody has open, and says what was in them.

import { closeSync, openSync, readSync, writeSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'

export interface PagesOf {
  /** A table or an index. */
  readonly table: string
  /** `leaf`: holds rows. `overflow`: holds the rest of a large one. */
  readonly type: 'leaf' | 'overflow' | 'internal'
}

/** The numbers of its pages, in the order of their rows. */
export function pagesOf(file: string, { table, type }: PagesOf): number[] {
  const db = new DatabaseSync(file)
  try {
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    const select = 'SELECT pageno FROM dbstat WHERE name = ? AND pagetype = ? ORDER BY path'
    return db
      .prepare(select)
      .all(table, type)
      .map((row) => row.pageno as number)
  } finally {
    db.close()
  }
}

/** Fills a page with bytes that are no page of SQLite's, or with another page, which looks intact. */
export function overwritePage(file: string, page: number, other?: number): void {
  const db = new DatabaseSync(file)
  const size = Number(db.prepare('PRAGMA page_size').get()!.page_size)
  db.close()
  const handle = openSync(file, 'r+')
  const bytes = Buffer.alloc(size, 0xff)
  if (other !== undefined) readSync(handle, bytes, 0, size, (other - 1) * size)
  writeSync(handle, bytes, 0, size, (page - 1) * size)
  closeSync(handle)
}

/** The ids of a table that cannot be read one by one: what an injected fault did. */
export function unreadableIds(file: string, table: string, upTo: number): number[] {
  const db = new DatabaseSync(file)
  try {
    const select = db.prepare(`SELECT * FROM ${table} WHERE id = ?`)
    return Array.from({ length: upTo }, (_, at) => at + 1).filter((id) => {
      try {
        select.get(id)
        return false
      } catch {
        return true
      }
    })
  } finally {
    db.close()
  }
}

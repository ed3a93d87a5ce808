// The count and SHA-256 of a table's rows, to compare two databases.

import { createHash } from 'node:crypto'
import { type CopyRow, type CopySide, type CopyTable, keyOf } from '../../store/contract/copy.ts'
import { addRow } from './copy-digest.ts'

export interface TableReport {
  readonly table: string
  readonly rows: number
  readonly sha256: string
}

export async function tableDigest(side: CopySide, table: CopyTable, say: (text: string) => void): Promise<TableReport> {
  const hash = createHash('sha256')
  let rows = 0
  for (let after: CopyRow | null = null; ; ) {
    const page: CopyRow[] = await side.read(table, after)
    const last = page.at(-1)
    if (!last) return { table: table.name, rows, sha256: hash.digest('hex') }
    for (const row of page) addRow(hash, row)
    rows += page.length
    after = keyOf(table, last)
    say(`${table.name} ${rows}`)
  }
}

// Compares what a copy wrote with what it read.

import { createHash, type Hash } from 'node:crypto'
import type { CopyRow } from '../../store/contract/copy.ts'

/** SHA-256 over rows, in their order; null: no row. */
export function digestOf(rows: readonly (CopyRow | null)[]): string {
  const hash = createHash('sha256')
  for (const row of rows) addRow(hash, row)
  return hash.digest('hex')
}

/** Each blob is preceded by its length, so that no two lists of rows give the same input. */
export function addRow(hash: Hash, row: CopyRow | null): void {
  hash.update(JSON.stringify(row?.map((cell) => (cell instanceof Uint8Array ? [cell.byteLength] : cell)) ?? null))
  for (const cell of row ?? []) if (cell instanceof Uint8Array) hash.update(cell)
}

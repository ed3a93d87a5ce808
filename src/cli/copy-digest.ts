// Compares what a copy wrote with what it read.

import { createHash } from 'node:crypto'
import type { CopyRow } from '../store/contract/copy.ts'

/** SHA-256 over rows, in their order; null: no row. */
export function digestOf(rows: readonly (CopyRow | null)[]): string {
  const hash = createHash('sha256')
  for (const row of rows) {
    // Each blob is preceded by its length, so that no two pages give the same input.
    hash.update(JSON.stringify(row?.map((cell) => (cell instanceof Uint8Array ? [cell.byteLength] : cell)) ?? null))
    for (const cell of row ?? []) if (cell instanceof Uint8Array) hash.update(cell)
  }
  return hash.digest('hex')
}

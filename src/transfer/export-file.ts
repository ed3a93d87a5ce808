// The exact form of an export: lines of JSON, each with its own digest (export-line.ts).
//
//   header    what was exported, of which database, when
//   row …     one a line, ids ascending
//   manifest  how many rows, and the SHA-256 of every byte before it

import { createHash } from 'node:crypto'
import { type ExportedRow, fieldsOf, isDamaged } from './export-row.ts'
import { sealedLine } from './export-line.ts'

export const FORMAT_VERSION = 1

export interface ExportHeader {
  readonly intray_export: number
  readonly database: string
  readonly exported_at: string
  /** Rows with higher ids were stored later. */
  readonly through_id: number
  readonly filters: Readonly<Record<string, string | number>>
}

export interface Manifest {
  readonly rows: number
  readonly events: number
  readonly revisions: number
  readonly erased: number
  /** Rows whose bytes no longer match their digest; they are exported without payload. */
  readonly damaged: number
  readonly first_id: number | null
  readonly last_id: number | null
  readonly sha256: string
}

/** Counts rows, and digests the bytes before the manifest. */
export class Tally {
  readonly #hash = createHash('sha256')
  readonly #counts = { rows: 0, events: 0, revisions: 0, erased: 0, damaged: 0 }
  #first: number | null = null
  #last: number | null = null

  get lastId(): number {
    return this.#last ?? 0
  }

  bytes(bytes: Uint8Array | string): void {
    this.#hash.update(bytes)
  }

  row(id: number, kind: 'event' | 'revision', content: 'whole' | 'erased' | 'damaged'): void {
    this.#counts.rows += 1
    this.#counts[kind === 'event' ? 'events' : 'revisions'] += 1
    if (content !== 'whole') this.#counts[content] += 1
    this.#first ??= id
    this.#last = id
  }

  manifest(): Manifest {
    return {
      ...this.#counts,
      first_id: this.#first,
      last_id: this.#last,
      sha256: this.#hash.copy().digest('hex'),
    }
  }
}

export function headerLine(header: ExportHeader): string {
  return `${sealedLine(header)}\n`
}

export function manifestLine(manifest: Manifest): string {
  return `${sealedLine({ manifest })}\n`
}

/** `tally` counts while the lines are read. */
export async function* exportLines(
  header: ExportHeader,
  rows: AsyncIterable<ExportedRow>,
  tally: Tally,
): AsyncGenerator<string> {
  const first = headerLine(header)
  tally.bytes(first)
  yield first
  for await (const row of rows) {
    const line = `${sealedLine(fieldsOf(row))}\n`
    tally.bytes(line)
    countRow(tally, row)
    yield line
  }
  yield manifestLine(tally.manifest())
}

export function countRow(tally: Tally, row: ExportedRow): void {
  const { id, kind, erasedAt } = row.event
  tally.row(id, kind, erasedAt !== null ? 'erased' : isDamaged(row) ? 'damaged' : 'whole')
}

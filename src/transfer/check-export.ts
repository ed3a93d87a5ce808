// Reads an export and checks it: every line against its digest, every payload against its own, the order of ids, the manifest
// against everything before it. A changed, missing or added byte is found and told with its line.

import { type ExportHeader, FORMAT_VERSION, type Manifest, manifestLine, Tally } from './export-file.ts'
import { openedLine } from './export-line.ts'
import { type ReadRow, rowOf } from './export-row.ts'

const LF = 10
const HEADER_START = '{"intray_export":'
const NO_HEADER = `is no header of an export in format ${FORMAT_VERSION} (ndjson, the only one that can be checked and imported)`

/**
 * A line longer than any row: base64 takes 4/3 of a payload, text at most twice its bytes as far as intake takes it, and bodies
 * have at most 100 MiB (INTRAY_MAX_BODY_BYTES).
 */
export const MAX_LINE_BYTES = 256 * 1024 * 1024

export interface ExportProblem {
  /** From 1. */
  readonly line: number
  /** The row's, where the line names one. */
  readonly id: number | null
  readonly what: string
}

export interface CheckedExport {
  readonly header: ExportHeader | null
  readonly manifest: Manifest | null
}

export interface CheckOptions {
  /** Once, before any row. */
  readonly onHeader?: (header: ExportHeader) => void
  readonly onProblem: (problem: ExportProblem) => void
  readonly maxLineBytes?: number
}

/** Yields the rows that are whole. Returns what the header and the manifest say, null where they are missing or damaged. */
export async function* checkExport(
  chunks: AsyncIterable<Uint8Array>,
  { onHeader, onProblem, maxLineBytes = MAX_LINE_BYTES }: CheckOptions,
): AsyncGenerator<ReadRow, CheckedExport> {
  const tally = new Tally()
  let header: ExportHeader | null = null
  let manifest: Manifest | null = null
  let number = 0
  let isTold = false
  for await (const { bytes, isEnded } of linesOf(chunks, maxLineBytes)) {
    number += 1
    const problem = (what: string) => {
      isTold = true
      onProblem({ line: number, id: bytes && idIn(bytes), what })
    }
    if (manifest !== null) {
      problem('stands after the manifest, which is the last line')
      continue
    }
    const fields = bytes && isEnded ? openedLine(bytes) : null
    if (!fields) {
      problem(damageOf(bytes, number, isEnded))
      if (bytes) tally.bytes(bytes)
      if (isEnded) tally.bytes('\n')
      continue
    }
    if (number === 1) {
      header = headerOf(fields)
      if (header) onHeader?.(header)
      else problem(NO_HEADER)
    } else if ('manifest' in fields) {
      manifest = fields.manifest as Manifest
      // One form for equal content: a manifest that says the same in other bytes was changed.
      if (!isTold && manifestLine(tally.manifest()) !== `${bytes}\n`) {
        problem(
          `is a manifest of other lines: ${JSON.stringify(manifest)} instead of ${JSON.stringify(tally.manifest())}`,
        )
      }
      continue
    } else {
      const row = readRow(fields, tally, problem)
      if (row) yield row
    }
    tally.bytes(bytes!)
    tally.bytes('\n')
  }
  if (number === 0) onProblem({ line: 1, id: null, what: 'is missing: the file is empty' })
  else if (manifest === null && !isTold)
    onProblem({ line: number + 1, id: null, what: 'is missing: the file has no manifest, so it was cut off' })
  return { header, manifest }
}

function damageOf(bytes: Buffer | null, number: number, isEnded: boolean): string {
  if (number === 1 && bytes?.toString('latin1', 0, HEADER_START.length) !== HEADER_START) return NO_HEADER
  return isEnded ? 'is not as it was written' : 'is cut off'
}

function readRow(
  fields: Readonly<Record<string, unknown>>,
  tally: Tally,
  problem: (what: string) => void,
): ReadRow | null {
  try {
    const row = rowOf(fields)
    if (row.id <= tally.lastId) throw new Error(`comes after id ${tally.lastId}`)
    tally.row(row.id, row.kind, row.erasedAt !== null ? 'erased' : row.payload === null ? 'damaged' : 'whole')
    return row
  } catch (error) {
    problem((error as Error).message)
    return null
  }
}

function headerOf(fields: Readonly<Record<string, unknown>>): ExportHeader | null {
  const { intray_export: version, database } = fields
  return version === FORMAT_VERSION && typeof database === 'string' ? (fields as unknown as ExportHeader) : null
}

/** Also of a damaged line, as far as it can be read. */
function idIn(bytes: Buffer): number | null {
  const match = /^\{"id":(\d{1,15}),/.exec(bytes.toString('latin1', 0, 32))
  return match ? Number(match[1]) : null
}

interface RawLine {
  /** Without its line break; null if it is longer than any line of an export. */
  readonly bytes: Buffer | null
  /** False for what stands behind the last line break. */
  readonly isEnded: boolean
}

/** Byte for byte: nothing is skipped, and CR is a byte like others. */
async function* linesOf(chunks: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<RawLine> {
  let parts: Buffer[] = []
  let size = 0
  const add = (part: Buffer) => {
    size += part.length
    if (size > maxBytes) parts = []
    else if (part.length > 0) parts.push(part)
  }
  const take = (isEnded: boolean): RawLine => {
    const line = { bytes: size > maxBytes ? null : Buffer.concat(parts), isEnded }
    parts = []
    size = 0
    return line
  }
  for await (const data of chunks) {
    const chunk = Buffer.from(data.buffer, data.byteOffset, data.byteLength)
    let from = 0
    for (let at = chunk.indexOf(LF); at !== -1; at = chunk.indexOf(LF, from)) {
      add(chunk.subarray(from, at))
      from = at + 1
      yield take(true)
    }
    add(chunk.subarray(from))
  }
  if (size > 0) yield take(false)
}

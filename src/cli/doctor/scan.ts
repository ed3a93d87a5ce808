// Checks every row of the journal: payloads against their digest and size, references against the payloads, dedupe keys
// against the references.
//
// Reads the dedupe rows first, because they are ordered by key and not by event, and keeps eight bytes of each in memory, in the
// order of their events without the gaps of ids.
// Skips rows that arrive after the start, because their keys may be missing. Reads around rows that cannot be read, and names
// them.

import { readEnvelope } from '../../intake/envelope.ts'
import { createDedupeDigest } from '../../model/dedupe.ts'
import { type IdGap, withoutGaps } from '../../model/id-gaps.ts'
import { isIntact } from '../../model/payload.ts'
import type { Cell, CopyRow, CopySide, CopyTable } from '../../store/contract/copy.ts'
import { describeRange, idsOf } from './key-range.ts'
import { readAround } from './read-around.ts'

/** A problem of one row. */
export interface RowProblem {
  readonly id: number
  readonly problem: string
}

/** A part of a table that cannot be read. */
export interface LostRows {
  readonly table: string
  /** Such as `id 12 to 17`. */
  readonly range: string
  /** How many ids it has; null for a key that is no id. */
  readonly ids: number | null
  readonly reason: string
}

export interface ScanResult {
  readonly lost: readonly LostRows[]
  readonly rows: number
  readonly bytes: number
  readonly erased: number
  /** Payloads that are missing or do not match their digest. */
  readonly damaged: readonly RowProblem[]
  /** Columns that disagree with the payload. */
  readonly disagreeing: readonly RowProblem[]
  /** Events whose dedupe key is missing or wrong. */
  readonly keys: readonly RowProblem[]
  /** Keys without an event. They are no problem: keys outlive their events. */
  readonly keysWithoutEvent: number
}

export interface ScanOptions {
  /** The last row to check. */
  readonly newest: number
  /** Check about this many rows, spread evenly, and no dedupe keys; null: check all. */
  readonly sample: number | null
  readonly onProgress: (text: string) => void
}

/** The columns of a journal row that are checked. */
interface JournalRow {
  readonly id: number
  readonly kind: string
  readonly revises: number | null
  readonly account_id: number
  readonly company_id: number
  readonly source_ref: string | null
  readonly channel_ref: string | null
  readonly idempotency_key: string | null
  readonly origin: string
  readonly recipe: string | null
  readonly size: number
  readonly sha256: Uint8Array
  readonly erased_at: number | null
  readonly payload: Uint8Array | null
}

export async function scanJournal(side: CopySide, options: ScanOptions): Promise<ScanResult> {
  const { sample, newest, onProgress } = options
  const { dedupeKey } = await side.identity()
  const digestOf = createDedupeDigest(dedupeKey)
  const gaps = await readGaps(side)
  const damaged: RowProblem[] = []
  const disagreeing: RowProblem[] = []
  const keyProblems: RowProblem[] = []
  let [rows, bytes, erased] = [0, 0, 0]

  /** `keys`: null if keys are not checked. */
  function check(row: JournalRow, keys: Keys | null): void {
    const { id, payload } = row
    rows += 1
    if (rows % 1000 === 0) onProgress(`${rows} rows read, up to ${id} of ${newest}`)
    if (payload === null && row.erased_at !== null) erased += 1
    else {
      bytes += payload?.byteLength ?? 0
      const damage = damageOf(row)
      if (damage) damaged.push({ id, problem: damage })
      else for (const problem of disagreements(row)) disagreeing.push({ id, problem })
    }
    // A message under a reference whose first event was purged has no key of its own.
    const problem =
      keys && row.kind === 'event' && row.revises === null ? keyProblem(row, keys.take(id), digestOf) : null
    if (problem) keyProblems.push({ id, problem })
  }

  const lost: LostRows[] = []
  const scan = { side, newest, onLost: (found: LostRows) => lost.push(found) }
  const keys = sample === null ? await readKeys(scan, gaps, onProgress) : null
  const stride = sample === null ? null : Math.max(1, Math.floor(withoutGaps(gaps, newest) / sample))
  for await (const row of stride === null ? everyRow(scan) : someRows(scan, stride)) check(row, keys)
  const keysWithoutEvent = keys?.left ?? 0
  return { lost, rows, bytes, erased, damaged, disagreeing, keys: keyProblems, keysWithoutEvent }
}

/** Reads all rows of a table and names those that cannot be read. */
export async function lostRows(
  side: CopySide,
  table: CopyTable,
  onProgress: (text: string) => void,
): Promise<LostRows[]> {
  const lost: LostRows[] = []
  let count = 0
  for await (const page of pagesOf({ side, newest: null, onLost: (found) => lost.push(found) }, table)) {
    count += page.length
    if (page.length === table.page) onProgress(`${count} rows of ${table.name} read`)
  }
  return lost
}

interface Scan {
  readonly side: CopySide
  /** The last id of events to read; null: all. */
  readonly newest: number | null
  readonly onLost: (lost: LostRows) => void
}

function pagesOf({ side, newest, onLost }: Scan, table: CopyTable): AsyncGenerator<readonly CopyRow[]> {
  const end = table.name === 'events' && newest !== null ? { end: newest + 1 } : {}
  return readAround(side, table, {
    ...end,
    onLost: (range, reason) => {
      const ids = range.upTo === null ? null : idsOf(table, range)
      const count = ids && ids.last - ids.first + 1
      onLost({ table: table.name, range: describeRange(table, range), ids: count, reason })
    },
  })
}

/** Without a row that cannot be read, ids look further apart than they are. */
async function readGaps(side: CopySide): Promise<IdGap[]> {
  const rowsOf = async (name: string): Promise<CopyRow[]> => {
    const rows: CopyRow[] = []
    for await (const page of pagesOf({ side, newest: null, onLost: () => {} }, tableOf(side, name))) rows.push(...page)
    return rows
  }
  const epochs = (await rowsOf('id_gaps')).map(([after, before]) => [after, before])
  const moves = (await rowsOf('tenant_gaps')).map(([, , from, after]) => [from, after])
  return [...epochs, ...moves].map(([after, before]) => ({ after: after as number, before: before as number }))
}

const tableOf = (side: CopySide, wanted: string): CopyTable => side.tables.find(({ name }) => name === wanted)!

function journalRow(table: CopyTable, cells: CopyRow): JournalRow {
  const columns = Object.keys(table.columns)
  return Object.fromEntries(cells.map((cell, at) => [columns[at]!, cell])) as unknown as JournalRow
}

async function* everyRow(scan: Scan): AsyncGenerator<JournalRow> {
  const table = tableOf(scan.side, 'events')
  for await (const page of pagesOf(scan, table)) for (const cells of page) yield journalRow(table, cells)
}

/** Reads one row for every `stride` ids. A row that cannot be read is named by the id that was looked for. */
async function* someRows({ side, newest, onLost }: Scan, stride: number): AsyncGenerator<JournalRow> {
  // One row per page: a sample with many rows of few pages would read only one part of the disk.
  const table = { ...tableOf(side, 'events'), page: 1 }
  for (let after = 0; newest === null || after < newest; ) {
    const { rows, damage } = await side.readStretch(table, { after: [after], upTo: null, isBackwards: false })
    const [cells] = rows
    if (damage !== null) onLost({ table: table.name, range: `id ${after + 1}, or after it`, ids: 1, reason: damage })
    if (!cells && damage === null) return
    const row = cells && journalRow(table, cells)
    if (row && newest !== null && row.id > newest) return
    if (row) yield row
    after = (row?.id ?? after + 1) + stride - 1
  }
}

function damageOf({ payload, sha256, size }: JournalRow): string | null {
  if (payload === null) return 'its bytes are gone'
  if (!isIntact(payload, sha256)) return 'its bytes do not match their digest'
  return payload.byteLength === size ? null : `it has ${payload.byteLength} bytes, and ${size} are recorded`
}

/** A promoted revision keeps its bytes and loses its reference (docs/internals/adr/0005). */
function disagreements({ payload, source_ref, channel_ref, origin, recipe }: JournalRow): string[] {
  // Its recipe may have read references from headers, which are not kept.
  if (recipe !== null) return []
  const read = readEnvelope(Buffer.from(payload!.buffer, payload!.byteOffset, payload!.byteLength))
  if ('problem' in read) return ['its bytes are nothing that intake takes']
  const found: string[] = []
  if (origin !== 'promotion' && read.envelope.sourceRef !== source_ref)
    found.push('source_ref is not that of its bytes')
  if (read.envelope.channelRef !== channel_ref) found.push('channel_ref is not that of its bytes')
  return found
}

function keyProblem(
  row: JournalRow,
  found: FoundKey | null,
  digestOf: ReturnType<typeof createDedupeDigest>,
): string | null {
  if (!found) return 'it has no dedupe key: sent again, it would be stored again'
  const ref = row.source_ref ?? row.idempotency_key
  // The key of a message without a reference was minted at random and has no digest of bytes; an erased reference is gone.
  if (ref === null) return null
  if (found.sha256 !== fingerprint(row.sha256)) return 'its dedupe key has the digest of other bytes'
  const tenant = { accountId: row.account_id, companyId: row.company_id }
  const expected = digestOf(tenant, row.source_ref === null ? 'key' : 'ref', ref)
  return found.digest === fingerprint(expected) ? null : 'its dedupe key is not that of its reference and tenant'
}

async function readKeys(
  scan: Scan & { readonly newest: number },
  gaps: readonly IdGap[],
  onProgress: (text: string) => void,
): Promise<Keys> {
  const table = tableOf(scan.side, 'dedupe')
  const columns = Object.keys(table.columns)
  const cell = (row: CopyRow, name: string): Cell => row[columns.indexOf(name)] ?? null
  const keys = new Keys(gaps)
  let count = 0
  for await (const page of pagesOf(scan, table)) {
    for (const row of page) {
      const [id, digest, sha256] = [cell(row, 'event_id'), cell(row, 'digest'), cell(row, 'sha256')]
      // On a damaged page a row may hold anything. Its event is then found to have no key.
      if (typeof id !== 'number' || !(digest instanceof Uint8Array) || !(sha256 instanceof Uint8Array)) continue
      if (id <= scan.newest) keys.put(id, digest, sha256)
    }
    count += page.length
    if (page.length === table.page) onProgress(`${count} dedupe keys read`)
  }
  return keys
}

/** 32-bit hashes of a dedupe key and of its payload's digest. */
interface FoundKey {
  readonly digest: number
  readonly sha256: number
}

/** The hashes of each event. A wrong key passes once in 4,000,000,000 times. */
class Keys {
  left = 0
  readonly #gaps: readonly IdGap[]
  #cells = new Uint32Array(2048)

  constructor(gaps: readonly IdGap[]) {
    this.#gaps = gaps
  }

  put(id: number, digest: Uint8Array, sha256: Uint8Array): void {
    const at = withoutGaps(this.#gaps, id) * 2
    if (at >= this.#cells.length) {
      const larger = new Uint32Array(Math.max(at + 2, this.#cells.length * 2))
      larger.set(this.#cells)
      this.#cells = larger
    }
    this.left += 1
    this.#cells[at] = fingerprint(digest)
    this.#cells[at + 1] = fingerprint(sha256)
  }

  take(id: number): FoundKey | null {
    const at = withoutGaps(this.#gaps, id) * 2
    const [digest, sha256] = this.#cells.subarray(at, at + 2)
    if (!digest || sha256 === undefined) return null
    this.left -= 1
    return { digest, sha256 }
  }
}

/** A 32-bit hash of all bytes. Never 0, which marks a missing key. */
function fingerprint(bytes: Uint8Array): number {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let mixed = 0
  for (let at = 0; at + 4 <= view.length; at += 4) {
    mixed = Math.imul(mixed ^ view.readUInt32LE(at), 0x9e3779b1)
    mixed ^= mixed >>> 15
  }
  return mixed >>> 0 || 1
}

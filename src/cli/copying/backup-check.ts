// Checks a backup: the file against its SHA-256 file, its structure, every payload against its digest, every reference against
// its dedupe key, and the counts of its rows.

import { createHash } from 'node:crypto'
import { createReadStream, existsSync, readFileSync } from 'node:fs'
import type { BackupFile, BackupFloor } from '../../store/contract/backup.ts'
import { StoreFailure } from '../../store/contract/failure.ts'
import type { CopySide } from '../../store/contract/copy.ts'
import { type RowProblem, scanJournal } from '../doctor/scan.ts'

export interface BackupReport {
  /** Journal rows and the last id given out; null if only a restore makes them readable. */
  readonly rows: number | null
  readonly lastId: number | null
  /** One sentence each. Empty: the backup is whole. */
  readonly problems: readonly string[]
}

const SHOWN = 20

/** The file beside a backup that holds its digest, in the form of `sha256sum`. */
export const digestFile = (file: string): string => `${file}.sha256`

export async function sha256Of(file: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer)
  return hash.digest('hex')
}

/** What a backup has against the digest beside it; null if it has none beside it, or the right one. */
export async function digestProblem(file: string): Promise<string | null> {
  if (!existsSync(digestFile(file)) || !existsSync(file)) return null
  const expected = readFileSync(digestFile(file), 'utf8').slice(0, 64)
  if ((await sha256Of(file)) === expected) return null
  return `The bytes of ${file} do not match the SHA-256 in ${digestFile(file)}.`
}

export async function checkBackup(
  backup: BackupFile,
  floor: BackupFloor,
  say: (text: string) => void,
): Promise<BackupReport> {
  const problems = (await backup.structure()).map((line) => `Its structure is damaged: ${line}.`)
  if (!backup.rows) return { rows: null, lastId: null, problems }
  try {
    const scanned = await scanRows(backup.rows, floor, say)
    return { ...scanned, problems: [...problems, ...scanned.problems].slice(0, SHOWN) }
  } catch (error) {
    if (!(error instanceof StoreFailure)) throw error
    return { rows: 0, lastId: 0, problems: [...problems, `Its rows cannot be read: ${error.message}.`].slice(0, SHOWN) }
  }
}

async function scanRows(side: CopySide, floor: BackupFloor, say: (text: string) => void) {
  const problems: string[] = []
  for (const table of side.tables) {
    const least = floor[table.name] ?? 0
    const count = least > 0 ? await side.count(table) : 0
    if (count < least) problems.push(`It has ${count} rows in ${table.name} instead of at least ${least}.`)
  }
  const { lastIds } = await side.identity()
  const found = await scanJournal(side, { newest: lastIds.events, sample: null, onProgress: say })
  problems.push(...found.lost.map(({ table, range }) => `Rows of ${table} cannot be read: ${range}.`))
  const ofRows = ({ id, problem }: RowProblem) => `Event ${id}: ${problem}.`
  for (const list of [found.damaged, found.disagreeing, found.keys]) problems.push(...list.map(ofRows))
  return { rows: found.rows, lastId: lastIds.events, problems }
}

// `./intray backup`: writes a backup of the database while servers run, checks it, and only then gives it its name. Also checks
// a backup that was written before.

import { existsSync, statSync } from 'node:fs'
import { constants, setPriority } from 'node:os'
import { dirname } from 'node:path'
import { loadConfig } from '../../config.ts'
import { appendErasures } from '../../erasure/log-file.ts'
import type { BackupFloor } from '../../store/contract/backup.ts'
import { StoreRefused } from '../../store/contract/failure.ts'
import { openBackupFile, openBackupSource } from '../../store/open.ts'
import { wholeNumber } from '../../runtime/parameter.ts'
import { type BackupReport, checkBackup, digestFile, digestProblem } from '../copying/backup-check.ts'
import { createPart, publish, removeOld, removePart, sealPart, targetOf } from '../copying/backup-target.ts'
import { command, CommandError, UsageError } from '../command.ts'
import { flag, JSON_FLAG } from '../flags.ts'
import { withStore } from '../open.ts'
import { noteSealed } from '../copying/sealed-note.ts'
import { inSteps, note, print, printable, printJson } from '../output.ts'
import { nameDatabase } from '../used-database.ts'

const ABOUT = `Writes a backup of the database into a file, while servers run.

  ./intray backup /backup/intray.db            one file; it must not exist
  ./intray backup /backup --keep 14            a new file named by time in a folder that exists
  ./intray backup --verify /backup/intray.db   checks a backup

The backup holds every message that was acknowledged before the command began. It is written as FILE.part, readable for this user
only, synced, and checked: its structure, every payload against its digest, every reference against its dedupe key, the counts
of its rows. Only then it gets its name, and FILE.sha256 beside it its digest. The index is not in it: a restored database builds
its own. The erasure log is kept beside it, in erasures-….log: a restore erases again what it names.

On PostgreSQL the command runs pg_dump, which must be on the PATH and of the server's version or newer; such a backup is checked as
far as pg_restore can read it.

Restore it with ./intray restore (docs/operating/backup.md).`

interface Written {
  readonly file: string
  readonly bytes: number
  readonly sha256: string
  readonly rows: number | null
  readonly last_id: number | null
}

export const backup = command({
  args: '[FILE | FOLDER]',
  about: ABOUT,
  flags: {
    keep: { value: 'N', about: 'Afterwards, remove all but the N newest backups of the folder.' },
    verify: { value: 'FILE', about: 'Check this backup instead of writing one; exit code 1 if it is damaged.' },
    ...JSON_FLAG,
  },
  async run(values, [path, ...rest]) {
    // Below the servers of the machine: intake is hardly slower beside it. Threads that start later inherit it.
    setPriority(constants.priority.PRIORITY_LOW)
    if (rest.length > 0) throw new UsageError(`Unexpected argument "${printable(rest[0]!)}".`)
    if (values.verify !== undefined) {
      if (path !== undefined || values.keep !== undefined)
        throw new UsageError('--verify takes no other file and no --keep.')
      return verify(values.verify, values.json === true)
    }
    if (path === undefined)
      throw new UsageError('FILE is missing: give a file that does not exist, or a folder that does.')
    const keep = flag('keep', values.keep, wholeNumber(1, 100_000))
    const written = await write(path, keep !== undefined)
    const removed = keep === undefined ? [] : removeOld(path, keep)
    if (values.json) printJson({ ok: true, ...written, removed })
    else print(`${written.file}: ${described(written)}, ${written.bytes} bytes, SHA-256 ${written.sha256}.\n`)
    return 0
  },
})

async function write(path: string, needsFolder: boolean): Promise<Written> {
  const begunAt = Date.now()
  const { databaseUrl } = loadConfig(process.env)
  const source = await openBackupSource(databaseUrl)
  try {
    nameDatabase(databaseUrl)
    const target = targetOf(path, source.extension, begunAt)
    if (needsFolder && target.folder === null)
      throw new UsageError('--keep needs a folder that exists instead of FILE.')
    const inode = createPart(target)
    try {
      const floor = await inSteps('backup', (say) => source.write(target.part, say))
      const sha256 = await sealPart(target)
      const report = await checked(target.part, floor)
      if (report.problems.length > 0) {
        throw new CommandError(`The backup is damaged, so it was not kept. ${report.problems.join(' ')}`)
      }
      const { size: bytes } = statSync(target.part)
      await withStore(
        async ({ erasures, hooks }) => {
          await appendErasures(dirname(target.file), erasures)
          noteSealed((await hooks.list('', 1)).length, 'backup')
        },
        { databaseUrl },
      )
      publish(target, inode)
      await source.note(begunAt)
      return { file: target.file, bytes, sha256, rows: report.rows, last_id: report.lastId }
    } catch (error) {
      removePart(target, inode)
      throw error
    }
  } finally {
    await source.close()
  }
}

async function verify(file: string, isJson: boolean): Promise<number> {
  const digest = await digestProblem(file)
  const { rows, lastId, problems: found } = await checked(file, {})
  const problems = [...(digest === null ? [] : [digest]), ...found]
  if (isJson) printJson({ ok: problems.length === 0, file, rows, last_id: lastId, problems })
  else if (problems.length === 0) print(`${file} is whole: ${described({ rows, last_id: lastId })}.\n`)
  else print(`${file} is damaged:\n${problems.map((problem) => `  ${printable(problem)}\n`).join('')}`)
  if (!existsSync(digestFile(file)))
    note(`There is no ${digestFile(file)}: bytes that hold no message were not checked.`)
  return problems.length === 0 ? 0 : 1
}

async function checked(file: string, floor: BackupFloor): Promise<BackupReport> {
  try {
    const backup = await openBackupFile(file)
    try {
      return await inSteps('verify', (say) => checkBackup(backup, floor, say))
    } finally {
      await backup.close()
    }
  } catch (error) {
    if (!(error instanceof StoreRefused)) throw error
    return { rows: null, lastId: null, problems: [error.message] }
  }
}

function described({ rows, last_id: lastId }: Pick<Written, 'rows' | 'last_id'>): string {
  return rows === null ? 'readable by pg_restore' : `${rows} events and revisions, ids up to ${lastId}`
}

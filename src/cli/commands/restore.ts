// `./intray restore`: makes a new database of a backup. It is checked before it is in place, and its ids jump, so that cursors of
// the old database cannot be taken for its own.

import { openRestore, openStore } from '../../store/open.ts'
import { checkBackup, digestProblem } from '../copying/backup-check.ts'
import { command, CommandError, UsageError } from '../command.ts'
import { ERASURE_FLAGS, eraseAgain, erasureSourceOf } from '../copying/erasure-source.ts'
import { JSON_FLAG } from '../flags.ts'
import { inSteps, print, printJson } from '../output.ts'
import { urlOf } from '../url-flag.ts'
import { nameDatabase } from '../used-database.ts'

const ABOUT = `Makes a new database of a backup.

  ./intray restore /backup/intray.db --to sqlite:./data/intray.db --erasures /backup

It overwrites nothing: the target must not exist (on PostgreSQL: an empty database). The backup is checked like
./intray backup --verify does; a damaged one is not restored. Sessions of the console end; tokens keep working. Then start servers
with INTRAY_DATABASE_URL set to the target: they build the index.

Messages that came in after the backup are missing, and followers have seen their ids. So ids jump by 1,000,000,000 and
more, and a stream or a list that goes on after such an id is answered 409 cursor_ahead (docs/operating/backup.md).

The backup holds what was erased after it was made. --erasures erases that again before the database is in place: with the folder of
the backups, where the erasure log is, or the URL of the old database.`

export const restore = command({
  args: 'FILE',
  about: ABOUT,
  flags: {
    to: { value: 'URL', about: 'The database to make.' },
    'to-file': { value: 'FILE', about: 'A file that holds the URL: every user of the machine can see flags.' },
    ...ERASURE_FLAGS,
    ...JSON_FLAG,
  },
  async run(values, [file]) {
    const to = urlOf(values.to, values['to-file'], '--to')
    if (to === undefined) throw new UsageError('The target is missing. Give --to URL or --to-file FILE.')
    const source = erasureSourceOf(values)
    const { rows, erased, after, before } = await restoreInto(file!, to, source)
    const erasures = erased === null ? {} : { erased }
    if (values.json) printJson({ ok: true, rows, ...erasures, gap: { after, before } })
    else {
      if (erased !== null) print(`Erased ${erased} of its events and revisions again.\n`)
      print(`Restored ${rows} events and revisions, ids up to ${after}. New ids begin above ${before}.\n`)
      print('Start servers with INTRAY_DATABASE_URL set to the new database; they build its index.\n')
    }
  },
})

async function restoreInto(file: string, to: string, source: string | null) {
  const target = await openRestore(file, to)
  try {
    nameDatabase(to)
    const digest = await digestProblem(file)
    if (digest !== null) throw new CommandError(`${digest} Nothing was restored.`)
    const loaded = await target.load()
    const { rows, problems } = await inSteps('verify', (say) => checkBackup(loaded, {}, say)).finally(loaded.close)
    if (problems.length > 0) throw new CommandError(`${file} is damaged. Nothing was restored. ${problems.join(' ')}`)
    const erased = source === null ? null : await eraseIn(target.loadedUrl, source)
    return { rows, erased, ...(await target.finish(Date.now())) }
  } finally {
    await target.discard()
  }
}

async function eraseIn(loadedUrl: string, source: string): Promise<number> {
  const store = await openStore(loadedUrl, { role: 'tool', mustExist: true })
  try {
    return await eraseAgain(source, store)
  } catch (error) {
    throw error instanceof CommandError ? new CommandError(`${error.message} Nothing was restored.`) : error
  } finally {
    await store.close()
  }
}

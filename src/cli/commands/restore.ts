// `./intray restore`: makes a new database of a backup. It is checked before it is in place, and its ids jump, so that cursors of
// the old database cannot be taken for its own.

import { applyErasures, erasureLog } from '../../erasure/apply-log.ts'
import { systemClock } from '../../runtime/clock.ts'
import type { Restore } from '../../store/contract/backup.ts'
import type { ErasureStore } from '../../store/contract/erasures.ts'
import { openCopySide, openRestore, openStore } from '../../store/open.ts'
import { checkBackup, digestProblem } from '../backup-check.ts'
import { command, CommandError, UsageError } from '../command.ts'
import { JSON_FLAG } from '../flags.ts'
import { withStore } from '../open.ts'
import { inSteps, print, printJson } from '../output.ts'
import { urlOf } from '../url-flag.ts'
import { nameDatabase } from '../used-database.ts'

const ABOUT = `Makes a new database of a backup.

  ./intray restore /backup/intray.db --to sqlite:./data/intray.db

It overwrites nothing: the target must not exist (on PostgreSQL: an empty database). The backup is checked like
./intray backup --verify does; a damaged one is not restored. Sessions of the console end; tokens keep working. Then start servers
with INTRAY_DATABASE_URL set to the target: they build the index.

Messages that came in after the backup are missing, and followers have seen their ids. So ids jump by 1,000,000,000, and a
stream or a list that goes on after such an id is answered 409 cursor_ahead (docs/operating/backup.md).

The backup holds what was erased after it was made. With --erasures and the old database, if it can be read, that is erased again.`

export const restore = command({
  args: 'FILE',
  about: ABOUT,
  flags: {
    to: { value: 'URL', about: 'The database to make.' },
    'to-file': { value: 'FILE', about: 'A file that holds the URL: every user of the machine can see flags.' },
    erasures: { value: 'URL', about: 'The old database: erase what it has erased.' },
    'erasures-file': { value: 'FILE', about: 'A file that holds this URL.' },
    ...JSON_FLAG,
  },
  async run(values, [file]) {
    const to = urlOf(values.to, values['to-file'], '--to')
    if (to === undefined) throw new UsageError('The target is missing. Give --to URL or --to-file FILE.')
    const old = urlOf(values.erasures, values['erasures-file'], '--erasures')
    const { rows, erased, after, before } =
      old === undefined
        ? await restoreInto(file!, to, null)
        : await withStore(({ erasures }) => restoreInto(file!, to, { url: old, erasures }), { databaseUrl: old })
    const erasures = erased === null ? {} : { erased }
    if (values.json) printJson({ ok: true, rows, ...erasures, gap: { after, before } })
    else {
      if (erased !== null) print(`Erased ${erased} of its events and revisions again.\n`)
      print(`Restored ${rows} events and revisions, ids up to ${after}. New ids begin above ${before}.\n`)
      print('Start servers with INTRAY_DATABASE_URL set to the new database; they build its index.\n')
    }
  },
})

/** The database whose erasures are carried out again. */
interface OldDatabase {
  readonly url: string
  readonly erasures: Pick<ErasureStore, 'log'>
}

async function restoreInto(file: string, to: string, old: OldDatabase | null) {
  const target = await openRestore(file, to)
  try {
    nameDatabase(to)
    const digest = await digestProblem(file)
    if (digest !== null) throw new CommandError(`${digest} Nothing was restored.`)
    const loaded = await target.load()
    const { rows, problems } = await inSteps('verify', (say) => checkBackup(loaded, {}, say)).finally(loaded.close)
    if (problems.length > 0) throw new CommandError(`${file} is damaged. Nothing was restored. ${problems.join(' ')}`)
    const erased = old === null ? null : await eraseAgain(target, old)
    return { rows, erased, ...(await target.finish(Date.now())) }
  } finally {
    await target.discard()
  }
}

async function eraseAgain({ loadedUrl }: Restore, { url, erasures }: OldDatabase): Promise<number> {
  if (!(await keyOf(url)).equals(await keyOf(loadedUrl))) {
    throw new CommandError(
      'The database of --erasures is not the one that the backup was made of. Nothing was restored.',
    )
  }
  const store = await openStore(loadedUrl, { role: 'tool', mustExist: true })
  try {
    return await applyErasures(erasureLog(erasures), store, systemClock)
  } finally {
    await store.close()
  }
}

/** The digests of a log say nothing under another key. */
async function keyOf(url: string): Promise<Buffer> {
  const side = await openCopySide(url, { mustExist: true })
  try {
    return Buffer.from((await side.identity()).dedupeKey)
  } finally {
    await side.close()
  }
}

// Where a restored database learns what was erased since: the old database, a log beside the backups, or a folder of them.

import { statSync } from 'node:fs'
import { applyErasures, erasureLog } from '../../erasure/apply-log.ts'
import { ErasureLogRefused, readErasures, readErasuresIn } from '../../erasure/log-file.ts'
import { systemClock } from '../../runtime/clock.ts'
import type { Store } from '../../store/contract/store.ts'
import { CommandError, UsageError } from '../command.ts'
import { withStore } from '../open.ts'
import { urlOf } from '../url-flag.ts'

export const ERASURE_FLAGS = {
  erasures: { value: 'PATH|URL', about: 'Erase again what this log names: its file, its folder, or the old database.' },
  'erasures-file': { value: 'FILE', about: 'A file that holds the URL of the old database.' },
  'no-erasures': { about: 'Bring back what was erased since, because no log can be read.' },
} as const

interface Given {
  readonly erasures?: string
  readonly 'erasures-file'?: string
  readonly 'no-erasures'?: boolean
}

/** A path or a URL; null: without a log, by choice. */
export function erasureSourceOf(values: Given): string | null {
  const source = urlOf(values.erasures, values['erasures-file'], '--erasures')
  if (values['no-erasures'] === true) {
    if (source !== undefined) throw new UsageError('Give --erasures or --no-erasures, not both.')
    return null
  }
  if (source !== undefined) return source
  throw new UsageError(
    'What was erased after the backup would come back. Give --erasures with the folder of the backups, which holds ' +
      'the erasure log, or with the URL of the old database. If neither can be read: --no-erasures.',
  )
}

/** Carries the log out on a store that nothing else uses. Returns how many rows it erased. */
export async function eraseAgain(source: string, store: Store): Promise<number> {
  const { key } = await store.erasures.logId()
  if (/^[a-z]+:/.test(source)) {
    return withStore(
      async ({ erasures }) => {
        if ((await erasures.logId()).key !== key) {
          throw new CommandError('The database of --erasures is not the one that the backup was made of.')
        }
        return applyErasures(erasureLog(erasures), store, systemClock)
      },
      { databaseUrl: source },
    )
  }
  const stats = statSync(source, { throwIfNoEntry: false })
  if (!stats) throw new CommandError(`${source} of --erasures does not exist.`)
  try {
    const records = stats.isDirectory() ? readErasuresIn(source, key) : readErasures(source, key)
    return await applyErasures(records, store, systemClock)
  } catch (error) {
    if (error instanceof ErasureLogRefused) throw new CommandError(error.message)
    throw error
  }
}

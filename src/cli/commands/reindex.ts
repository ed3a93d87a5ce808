// `./intray reindex`: rebuilds the index from the journal. If a server runs, its indexer does the work while intake goes on,
// and this command shows the progress; otherwise this command does it.

import { loadConfig } from '../../config.ts'
import type { IndexProgress, WordLimits } from '../../store/contract/indexing.ts'
import type { Store } from '../../store/contract/store.ts'
import { command } from '../command.ts'
import { JSON_FLAG } from '../flags.ts'
import { indexLimits } from '../index-limits.ts'
import { withStore } from '../open.ts'
import { createProgress, print, printJson } from '../output.ts'

const POLL_MS = 200

export const reindex = command({
  about: `Rebuilds the index (conversations, counts, search) from the journal. Messages, dedupe keys and tokens are not
touched. Works with a running server, whose intake goes on; until it is done, lists and searches are incomplete.`,
  flags: { status: { about: 'Only show how far the index is.' }, ...JSON_FLAG },
  async run(values) {
    const config = loadConfig(process.env)
    await withStore(async (store) => {
      if (!values.status) await rebuild(store, indexLimits(config))
      const progress = await store.index.progress()
      if (values.json) printJson(jsonOf(progress))
      else printProgress(progress)
    }, config)
  },
})

async function rebuild(store: Store, limits: WordLimits): Promise<void> {
  await store.index.requestRebuild()
  // Does not wait for later arrivals: under steady intake the index is never complete.
  const goal = await store.events.watermark()
  const progressLine = createProgress('reindex')
  for (;;) {
    // A running server does the work. Checked each time, so that this command takes over when the server stops.
    const served = (await store.nodes.live()).length > 0
    const progress = served ? await nextProgress(store) : await stepBoth(store, limits)
    progressLine.say(describe(progress))
    if (!progress.clearing && progress.searchable >= goal) break
  }
  progressLine.end()
}

async function stepBoth(store: Store, limits: WordLimits): Promise<IndexProgress> {
  await store.index.step(limits)
  return store.index.stepWords(limits)
}

async function nextProgress(store: Store): Promise<IndexProgress> {
  await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  return store.index.progress()
}

function describe({ cursor, lag, searchable, searchLag, clearing }: IndexProgress): string {
  if (clearing) return 'emptying the old index'
  const percentOf = (done: number, left: number) => (left === 0 ? 100 : Math.floor((100 * done) / (done + left)))
  return `${cursor} of ${cursor + lag} (${percentOf(cursor, lag)} %), search ${percentOf(searchable, searchLag)} %`
}

function jsonOf({ searchLag, ...progress }: IndexProgress) {
  return { ...progress, search_lag: searchLag }
}

function printProgress({ cursor, lag, searchable, searchLag, clearing }: IndexProgress): void {
  if (clearing) print('The index is being emptied for a rebuild.\n')
  else if (lag === 0 && searchLag > 0)
    print(
      `The index covers everything, up to event ${cursor}; search covers events up to ${searchable}, ${searchLag} are left.\n`,
    )
  else if (lag === 0) print(`The index covers everything, up to event ${cursor}.\n`)
  else print(`The index is at event ${cursor}; ${lag} rows are left.\n`)
}

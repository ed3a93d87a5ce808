// `./intray reindex`: rebuilds everything that is derived from the journal. With a server running, its indexer does the
// work while intake goes on, and this command watches; without one, this command does it itself.

import { parseArgs } from 'node:util'
import type { IndexProgress } from '../../store/contract/indexing.ts'
import type { Store } from '../../store/contract/store.ts'
import type { Command } from '../command.ts'
import { withStore } from '../open.ts'
import { createProgress, print, printJson } from '../output.ts'

const LIMITS = { maxRows: 2000, maxBytes: 16 * 1024 * 1024 }
const LOOK_EVERY_MS = 200

const HELP = `
Usage: ./intray reindex [--status] [--json]

Empties the derived tables (conversations, counts, what events are found by) and builds them again from the journal.
Messages, dedupe keys and tokens are not touched. Works beside a running server, whose intake goes on; until it is done
the index shows a part of what is stored.

  --status  Only tell how far the index is.
  --json    Print JSON.`

export const reindex: Command = {
  name: 'reindex',
  summary: 'Rebuild the index from the journal.',
  help: HELP,
  async run(args) {
    const { values } = parseArgs({
      args: [...args],
      options: { status: { type: 'boolean' }, json: { type: 'boolean' } },
    })
    const tell = values.json ? tellJson : tellText
    await withStore(async (store) => {
      if (!values.status) await rebuild(store)
      tell(await store.index.progress())
    })
    return 0
  },
}

async function rebuild(store: Store): Promise<void> {
  await store.index.requestRebuild()
  // What arrives meanwhile is not waited for: under steady intake there is always something new.
  const goal = await store.events.watermark()
  const progressLine = createProgress('reindex')
  for (;;) {
    // A server that is there does the work; looking each time, we also take over from one that stops.
    const served = (await store.nodes.live()).length > 0
    const progress = served ? await watched(store) : await store.index.step(LIMITS)
    progressLine.say(describe(progress))
    if (!progress.clearing && progress.cursor >= goal) break
  }
  progressLine.end()
}

async function watched(store: Store): Promise<IndexProgress> {
  await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS))
  return store.index.progress()
}

function describe({ cursor, lag, clearing }: IndexProgress): string {
  const total = cursor + lag
  return clearing
    ? 'emptying the old index'
    : `${cursor} of ${total} (${total === 0 ? 100 : Math.floor((100 * cursor) / total)} %)`
}

function tellText({ cursor, lag, clearing }: IndexProgress): void {
  if (clearing) print('The index is being emptied for a rebuild.\n')
  else if (lag === 0) print(`The index covers everything, up to event ${cursor}.\n`)
  else print(`The index is at event ${cursor}; ${lag} rows are still to come.\n`)
}

function tellJson(progress: IndexProgress): void {
  printJson(progress)
}

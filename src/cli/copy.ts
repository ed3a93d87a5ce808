// `./intray copy`: moves everything to another database, between stores of any kind. It freezes the source, copies what is
// primary table by table, holds both sides against each other, and builds the index of the copy. Killed anywhere, the same
// command goes on where it stopped.

import { createHash } from 'node:crypto'
import { parseArgs } from 'node:util'
import { type CopyRow, type CopySide, type CopyTable, keyOf } from '../store/contract/copy.ts'
import { openCopySide, openStore } from '../store/open.ts'
import { type Command, CommandError, UsageError } from './command.ts'
import { createProgress, print, printJson, table as textTable } from './output.ts'

const INDEX_LIMITS = { maxRows: 2000, maxBytes: 16 * 1024 * 1024 }

const HELP = `
Usage: ./intray copy --from URL --to URL [--json]
       ./intray copy --release URL

Copies a database into an empty one, for example from a file to a database server when one machine is not enough:

  ./intray copy --from sqlite:./data/intray.db --to postgres://intray:secret@db.example/intray

The source is frozen first: from then on it takes no message, and servers on it answer 503, so that senders try again.
Messages keep their ids, tokens go on working, and a message that was sent before is known in the copy. At the end both
sides are compared by count and SHA-256 of every table. Then start servers with INTRAY_DATABASE_URL set to the copy.

If it is interrupted, run it again: it goes on where it stopped. The target must be empty or a copy of this source.

  --from     The database to copy, as in INTRAY_DATABASE_URL.
  --to       The database to copy into.
  --release  Takes a frozen database back into service, where a copy was given up.
  --json     Print JSON.`

interface TableReport {
  readonly table: string
  readonly rows: number
  readonly sha256: string
}

export const copy: Command = {
  name: 'copy',
  summary: 'Move everything to another database.',
  help: HELP,
  async run(args) {
    const { values } = parseArgs({
      args: [...args],
      options: {
        from: { type: 'string' },
        to: { type: 'string' },
        release: { type: 'string' },
        json: { type: 'boolean' },
      },
    })
    const { from, to, release, json } = values
    if (release !== undefined) {
      if (from !== undefined || to !== undefined) throw new UsageError('--release stands alone.')
      await withSide(release, true, (side) => side.release())
      print('The database takes messages again.\n')
      return 0
    }
    if (from === undefined || to === undefined) throw new UsageError('Say --from which database --to which one.')
    const reports = await withSide(from, true, (source) =>
      withSide(to, false, (target) => copyDatabase(source, target)),
    )
    await buildIndex(to)
    if (json) printJson({ ok: true, tables: reports })
    else tell(reports)
    return 0
  },
}

async function withSide<T>(url: string, mustExist: boolean, use: (side: CopySide) => Promise<T>): Promise<T> {
  const side = await openCopySide(url, { mustExist })
  try {
    return await use(side)
  } finally {
    await side.close()
  }
}

async function copyDatabase(source: CopySide, target: CopySide): Promise<TableReport[]> {
  const { databaseUuid } = await source.identity()
  if ((await target.identity()).databaseUuid === databaseUuid) {
    throw new CommandError('--from and --to are the same database.')
  }
  const state = await target.begin(databaseUuid)
  if (state.finished) throw new CommandError('This copy was finished before. Use the target, or give an empty one.')
  await source.freeze()
  const identity = await source.identity()
  for (const table of source.tables) await copyTable(source, target, table, state.positions[table.name] ?? null)
  const reports: TableReport[] = []
  for (const table of source.tables) reports.push(await compare(source, target, table))
  await target.finish(identity)
  return reports
}

async function copyTable(
  source: CopySide,
  target: CopySide,
  table: CopyTable,
  position: CopyRow | null,
): Promise<void> {
  const total = await source.count(table)
  let done = position === null ? 0 : await target.count(table)
  const progress = createProgress('copy')
  progress.say(`${table.name} ${done} of ${total}`)
  for (let after = position; ; ) {
    const rows = await source.read(table, after)
    const last = rows.at(-1)
    if (!last) break
    await target.write(table, rows)
    after = keyOf(table, last)
    done += rows.length
    progress.say(`${table.name} ${done} of ${total} (${Math.floor((100 * done) / Math.max(total, 1))} %)`)
  }
  progress.end()
}

async function compare(source: CopySide, target: CopySide, table: CopyTable): Promise<TableReport> {
  const progress = createProgress('verify')
  const [there, here] = await Promise.all([source, target].map((side) => digest(side, table, progress.say)))
  progress.end()
  if (there!.rows === here!.rows && there!.sha256 === here!.sha256) return there!
  throw new CommandError(
    `The copy differs from its source in ${table.name}: ${here!.rows} rows instead of ${there!.rows}, or other content. ` +
      'The source is unharmed and still frozen. Empty the target and copy again, or give up: ./intray copy --release <source>.',
  )
}

async function digest(side: CopySide, table: CopyTable, say: (text: string) => void): Promise<TableReport> {
  const hash = createHash('sha256')
  let rows = 0
  for (let after: CopyRow | null = null; ; ) {
    const page: CopyRow[] = await side.read(table, after)
    const last = page.at(-1)
    if (!last) return { table: table.name, rows, sha256: hash.digest('hex') }
    for (const row of page) {
      // The lengths stand where the bytes would: no two rows give the same sequence.
      hash.update(JSON.stringify(row.map((cell) => (cell instanceof Uint8Array ? [cell.byteLength] : cell))))
      for (const cell of row) if (cell instanceof Uint8Array) hash.update(cell)
    }
    rows += page.length
    after = keyOf(table, last)
    say(`${table.name} ${rows}`)
  }
}

/** What is derived is not copied: it is built from the copied journal. */
async function buildIndex(url: string): Promise<void> {
  const store = await openStore(url, { role: 'tool' })
  const progress = createProgress('index')
  try {
    for (;;) {
      const { lag, clearing } = await store.index.step(INDEX_LIMITS)
      progress.say(`${lag} rows to come`)
      if (lag === 0 && !clearing) break
    }
  } finally {
    progress.end()
    await store.close()
  }
}

function tell(reports: readonly TableReport[]): void {
  print(
    textTable(
      ['TABLE', 'ROWS', 'SHA-256 (both sides)'],
      reports.map(({ table, rows, sha256 }) => [table, String(rows), sha256]),
    ),
  )
  print(
    '\nThe copy is complete and equal. Start servers with INTRAY_DATABASE_URL set to it. The source stays frozen.\n',
  )
}

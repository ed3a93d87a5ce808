// `./intray copy`: copies a database into another one, of either kind. It freezes the source, copies the primary tables,
// compares both sides, and builds the index of the copy. After an interruption the same command resumes.

import { loadConfig } from '../../config.ts'
import { type CopyRow, type CopySide, type CopyTable, keyOf } from '../../store/contract/copy.ts'
import { command, CommandError, UsageError } from '../command.ts'
import { JSON_FLAG } from '../flags.ts'
import { buildIndex } from '../build-index.ts'
import { withSide } from '../open.ts'
import { createProgress, print, printJson, table as textTable } from '../output.ts'
import { type TableReport, tableDigest } from '../table-digest.ts'
import { urlOf } from '../url-flag.ts'

const ABOUT = `Copies a database into an empty one, for example from SQLite to PostgreSQL.

  ./intray copy --from sqlite:./data/intray.db --to postgres://intray:secret@db.example/intray

The source is frozen first: it takes no more messages, and its servers answer 503, so that senders try again. Messages
keep their ids, tokens keep working, and a message that was sent before is a duplicate in the copy too. At the end both
sides are compared by the count and SHA-256 of every table. Then start servers with INTRAY_DATABASE_URL set to the copy.

If it is interrupted, run the same command again: it resumes. The target must be empty or a copy of this source.`

export const copy = command({
  about: ABOUT,
  flags: {
    from: { value: 'URL', about: 'The database to copy [INTRAY_DATABASE_URL].' },
    'from-file': { value: 'FILE', about: 'A file that holds the URL: every user of the machine can see flags.' },
    to: { value: 'URL', about: 'The database to copy into.' },
    'to-file': { value: 'FILE', about: 'A file that holds the URL.' },
    release: { value: 'URL', about: 'Unfreezes a database after a copy was given up. Takes no other flag.' },
    ...JSON_FLAG,
  },
  async run(values) {
    const to = urlOf(values.to, values['to-file'], '--to')
    const given = urlOf(values.from, values['from-file'], '--from')
    if (values.release !== undefined) {
      if (given ?? to) throw new UsageError('--release takes no --from and no --to. Leave them out.')
      await withSide(values.release, true, release)
      return
    }
    if (to === undefined) throw new UsageError('The target is missing. Give --to URL or --to-file FILE.')
    const from = given ?? loadConfig(process.env).databaseUrl
    const reports = await withSide(from, true, (source) =>
      withSide(to, false, (target) => copyDatabase(source, target)),
    )
    await buildIndex(to)
    if (values.json) printJson({ ok: true, finished_before: reports === null, tables: reports ?? [] })
    else printReports(reports)
  },
})

async function release(side: CopySide): Promise<void> {
  const state = await side.state()
  if (state && !state.finished) {
    throw new CommandError(
      'This database is the target of an unfinished copy, and no server may open it. ' +
        'Run the copy again to finish it, or delete the database and start with an empty one.',
    )
  }
  if ((await side.freezeMark()) === null) {
    print('The database is not frozen: there is nothing to release.\n')
    return
  }
  await side.release()
  print('The database takes messages again.\n')
}

/** Null if this copy is already complete. */
async function copyDatabase(source: CopySide, target: CopySide): Promise<TableReport[] | null> {
  const sourceState = await source.state()
  if (sourceState && !sourceState.finished) {
    throw new CommandError('The source is itself the target of an unfinished copy. Finish that one first.')
  }
  const { databaseUuid } = await source.identity()
  if ((await target.identity()).databaseUuid === databaseUuid) {
    throw new CommandError('--from and --to are the same database. Give another --to.')
  }
  const state = await target.begin(databaseUuid)
  if (state.finished) return null
  const mark = await source.freeze()
  const identity = await source.identity()
  for (const table of source.tables) {
    await copyTable(source, target, databaseUuid, table, state.positions[table.name] ?? null)
  }
  const reports: TableReport[] = []
  for (const table of source.tables) reports.push(await compare(source, target, table))
  if ((await source.freezeMark()) !== mark) {
    throw new CommandError('The source was released while it was copied. Empty the target and copy again.')
  }
  await target.finish(identity)
  return reports
}

async function copyTable(
  source: CopySide,
  target: CopySide,
  sourceUuid: string,
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
    await target.write(sourceUuid, table, after, rows)
    after = keyOf(table, last)
    done += rows.length
    progress.say(`${table.name} ${done} of ${total} (${Math.floor((100 * done) / Math.max(total, 1))} %)`)
  }
  progress.end()
}

async function compare(source: CopySide, target: CopySide, table: CopyTable): Promise<TableReport> {
  const progress = createProgress('verify')
  const [there, here] = await Promise.all([source, target].map((side) => tableDigest(side, table, progress.say)))
  progress.end()
  if (there!.rows === here!.rows && there!.sha256 === here!.sha256) return there!
  throw new CommandError(
    `The copy differs from its source in ${table.name}: ${here!.rows} rows instead of ${there!.rows}, or other content. ` +
      'The source is unharmed and still frozen. Empty the target and copy again, or give up: ./intray copy --release <source>.',
  )
}

function printReports(reports: readonly TableReport[] | null): void {
  if (reports === null) {
    print('This copy is already complete. Start servers with INTRAY_DATABASE_URL set to it.\n')
    return
  }
  print(
    textTable(
      ['TABLE', 'ROWS', 'SHA-256 (both sides)'],
      reports.map(({ table, rows, sha256 }) => [table, String(rows), sha256]),
    ),
  )
  print(
    '\nThe copy is complete and equal to its source. Start servers with INTRAY_DATABASE_URL set to it. The source stays frozen.\n',
  )
}

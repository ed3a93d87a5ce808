// `./intray copy`: copies a database into another one, of either kind, while its senders go on. In the end it freezes the source, so
// that the two never both take messages. After an interruption the same command goes on.

import { loadConfig } from '../../config.ts'
import { parseTenant, type Tenant, tenantText } from '../../model/principal.ts'
import { parseDuration } from '../../runtime/duration.ts'
import type { CopySide } from '../../store/contract/copy.ts'
import type { MoveSide } from '../../store/contract/tenant-move.ts'
import { command, CommandError, UsageError } from '../command.ts'
import { JSON_FLAG } from '../flags.ts'
import { indexLimits } from '../index-limits.ts'
import { type CopyReport, copyOnline } from '../copying/online-copy.ts'
import { withSide, withStore } from '../open.ts'
import { print, printJson, table } from '../output.ts'
import { noteSealed } from '../copying/sealed-note.ts'
import { copyTenant, type TenantCopyReport } from '../copying/tenant-copy.ts'
import { urlOf } from '../url-flag.ts'

const DEFAULT_PAUSE = '5s'
const LONGEST_PAUSE = '10m'

const ABOUT = `Copies a database into an empty one, for example from SQLite to PostgreSQL.

  ./intray copy --from sqlite:./data/intray.db --to postgres://intray:secret@db.example/intray

Servers of the source go on meanwhile. For the last rows, in the end, writers wait a few seconds; then the source is frozen: it
takes no more messages, and its servers answer 503, so that senders try again. Messages keep their ids, tokens keep working, and a
message that was sent before is a duplicate in the copy too. Every row is read back from the copy and compared, and rows are counted
on both sides. Then start servers with INTRAY_DATABASE_URL set to the copy.

If it is interrupted, run the same command again. The target must be empty or a copy of this source.

  ./intray copy --tenant 7/42 --to postgres://intray:secret@cell2.example/intray --address https://cell2.example

moves one tenant, while the others of both databases go on. Its events get new ids, in the same order; a message that was sent before
is a duplicate of the new id; its cursors are answered 409. Both databases must share one dedupe key: ./intray init --key-from URL.`

export const copy = command({
  about: ABOUT,
  flags: {
    from: { value: 'URL', about: 'The database to copy [INTRAY_DATABASE_URL].' },
    'from-file': { value: 'FILE', about: 'A file that holds the URL: every user of the machine can see flags.' },
    to: { value: 'URL', about: 'The database to copy into.' },
    'to-file': { value: 'FILE', about: 'A file that holds the URL.' },
    'max-pause': {
      value: 'DURATION',
      about: `Freeze once the rest should take less than this, from 1s to ${LONGEST_PAUSE} [${DEFAULT_PAUSE}].`,
    },
    tenant: { value: 'A/C', about: 'Move this account and company only, into a database that may have others.' },
    address: {
      value: 'URL',
      about: 'With --tenant: the address of its new server, which the source tells its senders.',
    },
    release: {
      value: 'URL',
      about: 'Unfreezes a database after a copy was given up. With --tenant: opens that tenant.',
    },
    ...JSON_FLAG,
  },
  async run(values) {
    const to = urlOf(values.to, values['to-file'], '--to')
    const given = urlOf(values.from, values['from-file'], '--from')
    const tenant = tenantOf(values.tenant)
    if (values.address !== undefined && !tenant) throw new UsageError('--address goes with --tenant.')
    if (values.release !== undefined) {
      if (given ?? to) throw new UsageError('--release takes no --from and no --to. Leave them out.')
      await withSide(values.release, true, (side) => (tenant ? reopen(side, tenant) : release(side)))
      return
    }
    if (to === undefined) throw new UsageError('The target is missing. Give --to URL or --to-file FILE.')
    const maxPauseMs = pauseOf(values['max-pause'] ?? DEFAULT_PAUSE)
    const config = loadConfig(process.env)
    if (tenant) {
      const moved = await moveTenant(given ?? config.databaseUrl, to, tenant, values.address ?? null)
      noteSealed(rowsOf(moved.tables, 'hooks'), 'copy')
      if (values.json) printJson({ ok: true, tables: moved.tables, closed_ms: moved.closedMs })
      else printMove(moved, tenant)
      return
    }
    const report = await withSide(given ?? config.databaseUrl, true, (source) =>
      withSide(to, false, (target) => copyOnline({ source, target, limits: indexLimits(config), maxPauseMs })),
    )
    noteSealed(rowsOf(report?.tables ?? [], 'hooks'), 'copy')
    if (values.json) printJson({ ok: true, finished_before: report === null, ...jsonOf(report) })
    else printReport(report)
  },
})

function rowsOf(tables: readonly { readonly table: string; readonly rows: number | null }[], name: string): number {
  return tables.find(({ table: one }) => one === name)?.rows ?? 0
}

function tenantOf(text: string | undefined): Tenant | null {
  if (text === undefined) return null
  const tenant = parseTenant(text)
  if (tenant) return tenant
  throw new UsageError('--tenant takes an account and a company, for example 7/42.')
}

function moveTenant(from: string, to: string, tenant: Tenant, address: string | null): Promise<TenantCopyReport> {
  return withSide(from, true, (source) =>
    withStore(
      (sourceStore) => withSide(to, true, (target) => copyTenant({ tenant, address, source, sourceStore, target })),
      { databaseUrl: from },
    ),
  )
}

async function reopen(side: MoveSide, tenant: Tenant): Promise<void> {
  if ((await side.tenants.state(tenant)) !== 'closed') {
    print('The tenant is not closed: there is nothing to release.\n')
    return
  }
  await side.tenants.reopen(tenant)
  print('The tenant can be used here again.\n')
}

function printMove({ tables, closedMs }: TenantCopyReport, tenant: Tenant): void {
  print(
    table(
      ['TABLE', 'ROWS'],
      tables.map(({ table: name, rows }) => [name, String(rows)]),
    ),
  )
  print(
    `\nThe tenant ${tenantText(tenant)} is in the target now, with the same tokens, after ${(closedMs / 1000).toFixed(1)} s in which it was closed. ` +
      'Route its tokens there: the source answers 503 tenant_moved.\n',
  )
}

function pauseOf(text: string): number {
  const ms = parseDuration(text)
  if (ms !== null && ms >= 1000 && ms <= parseDuration(LONGEST_PAUSE)!) return ms
  throw new UsageError(`--max-pause takes a duration from 1s to ${LONGEST_PAUSE}, for example 30s.`)
}

async function release(side: CopySide): Promise<void> {
  const state = await side.state()
  if (state && !state.finished) {
    throw new CommandError(
      'This database is the target of an unfinished copy, and no server may open it. ' +
        'Run the copy again to finish it, or delete the database and start with an empty one.',
    )
  }
  const wasFrozen = await side.isFrozen()
  const wasNoting = (await side.noting()) !== null
  await side.release()
  if (wasFrozen) print('The database takes messages again.\n')
  else if (wasNoting) print('The database is not frozen. It does not note changes for a copy any more.\n')
  else print('The database is not frozen: there is nothing to release.\n')
}

function jsonOf(report: CopyReport | null): object {
  if (report === null) return { tables: [] }
  return { tables: report.tables, rounds: report.rounds, paused_ms: report.pausedMs }
}

function printReport(report: CopyReport | null): void {
  if (report === null) {
    print('This copy is already complete. Start servers with INTRAY_DATABASE_URL set to it.\n')
    return
  }
  const rows = report.tables.map(({ table: name, rows: count }) => [
    name,
    count === null ? 'not counted' : String(count),
  ])
  print(table(['TABLE', 'ROWS (both sides)'], rows))
  print(
    `\nThe copy is complete and equal to its source, in which writers waited for ${(report.pausedMs / 1000).toFixed(1)} s. ` +
      'Start servers with INTRAY_DATABASE_URL set to it. The source stays frozen.\n',
  )
}

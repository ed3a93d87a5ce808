// `./intray doctor`: checks a database and prints, for each check, the result and what to do about it. Works with running
// servers and without. Exit code 0: no problem found; 1: at least one.

import { type Config, loadConfig } from '../../config.ts'
import { formatDuration } from '../../runtime/duration.ts'
import { DatabaseDamaged, StoreFailure } from '../../store/contract/failure.ts'
import { type CopySide, NOTING_STALE_MS } from '../../store/contract/copy.ts'
import type { Store } from '../../store/contract/store.ts'
import { command, UsageError } from '../command.ts'
import { type Check, ok, SHOWN, type Verdict, warning, wrong } from '../doctor/check.ts'
import { type LostRows, lostRows, type ScanResult, scanJournal } from '../doctor/scan.ts'
import { openKeyFile, sealedSecrets } from '../doctor/secrets.ts'
import { JSON_FLAG } from '../flags.ts'
import { salvageFile } from '../../store/open.ts'
import { withSide, withStore } from '../open.ts'
import { createProgress, print, printable, printJson } from '../output.ts'

const OLD_LAG_S = 60
/** Intervals of the schedule after which its last backup is overdue. */
const LATE_BACKUPS = 2

export const doctor = command({
  about: `Checks a database: payloads, keys, syncs, index. The checks: whether it opens and takes writes, whether
other users of the machine can open its files, whether commits are
synced, whether every row can be read, whether every payload still has the digest it arrived with, whether references and dedupe keys agree with the
payloads, how far behind the index is, which transactions delay it, whether the sealed secrets of hooks open, and how old the last
backup is. Reads every event once; servers may keep running.
Exit code 1 if there is a problem.`,
  flags: {
    sample: { value: 'N', about: 'Check about N events, spread evenly, instead of all, and no dedupe keys.' },
    ...JSON_FLAG,
  },
  async run(values) {
    const sample = sampleOf(values.sample)
    const checks = await examine(loadConfig(process.env), sample)
    const isHealthy = checks.every(({ verdict }) => verdict !== 'wrong')
    if (values.json) printJson({ ok: isHealthy, checks })
    else print(`${checks.map(describe).join('')}\n${isHealthy ? 'No problems found.' : 'Problems found: see above.'}\n`)
    return isHealthy ? 0 : 1
  },
})

function sampleOf(text: string | undefined): number | null {
  if (text === undefined) return null
  const count = /^\d{1,9}$/.test(text) ? Number(text) : 0
  if (count === 0) throw new UsageError('--sample takes a whole number from 1 to 999999999.')
  return count
}

/** Damage in the index keeps the store from being opened, but not the messages from being read; damage in the journal, both. */
async function examine(config: Config, sample: number | null): Promise<Check[]> {
  const { databaseUrl: url } = config
  const notOpened = (error: unknown) => {
    const isDamaged = error instanceof DatabaseDamaged || (error instanceof StoreFailure && error.kind === 'damaged')
    if (!isDamaged) throw error
    return wrong('opens', `The database cannot be opened: ${error.message}`, salvageAdvice(url))
  }
  try {
    return await withSide(url, true, async (side) => {
      try {
        return await withStore((store) => examineStore(store, side, config, sample), config)
      } catch (error) {
        return [notOpened(error), ...(await attempt('payloads', () => journal(null, side, url, sample), url))]
      }
    })
  } catch (error) {
    return [notOpened(error)]
  }
}

async function examineStore(store: Store, side: CopySide, config: Config, sample: number | null): Promise<Check[]> {
  const { databaseUrl: url } = config
  const checks: Record<string, () => Promise<Check | Check[]> | Check> = {
    opens: () => opened(store),
    files: () => files(store, config),
    syncs: () => synced(store),
    writes: () => writable(store),
    structure: () => structure(store, url),
    payloads: () => journal(store, side, url, sample),
    index: () => index(store, side, url),
    watermark: () => watermark(store),
    refusals: () => refusals(side),
    secrets: () => sealedSecrets(store, config),
    backups: () => backups(store, config),
    copies: () => copies(side),
  }
  const found: Check[] = []
  for (const [name, check] of Object.entries(checks)) found.push(...(await attempt(name, check, url)))
  return found
}

/** A check that fails does not keep the others from speaking. */
async function attempt(name: string, check: () => Promise<Check | Check[]> | Check, url: string): Promise<Check[]> {
  try {
    return [await check()].flat()
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    const isDamaged = error instanceof StoreFailure && error.kind === 'damaged'
    const summary = `This check could not be finished: ${message}.`
    const advice = isDamaged
      ? salvageAdvice(url)
      : 'The other checks do not depend on it. Run it again; the log of the server may say more.'
    return [wrong(name, summary, advice)]
  }
}

/** The exact commands. */
function salvageAdvice(url: string): string {
  return (
    'Check the disk. Stop the server, keep the files, and run: ' +
    `./intray salvage --to ${shellWord(salvageFile(url))} (it copies what can be read and names the rest). ` +
    'If a backup is newer than what is missing, restore that instead: ./intray restore FILE --to URL'
  )
}

function opened({ facts }: Store): Check {
  const shown = Object.entries(facts).map(([name, value]) => `${name}=${value}`)
  return ok('opens', `The database opens: ${shown.join(', ')}.`)
}

/** Messages are personal data: other users of the machine must not read them. */
async function files(store: Store, config: Config): Promise<Check> {
  const found = [...(await store.diagnosis.openFiles()), ...openKeyFile(config)]
  if (found.length === 0) return ok('files', 'No file of the database is open to other users of the machine.')
  const shown = found.map(({ path, mode }) => `${path} (mode ${mode.toString(8)})`).join(', ')
  const summary = `Every user of the machine can open files of the database: ${shown}.`
  // With the files that SQLite adds and removes beside a database.
  const names = new Set(found.map(({ path }) => path.replace(/-(wal|shm)$/, '')))
  return wrong('files', summary, `Run: chmod o-rwx ${Array.from(names, (name) => `${shellWord(name)}*`).join(' ')}`)
}

function shellWord(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`
}

/** From the facts that a driver reports; a setting that it does not have is not checked. */
function synced({ facts }: Store): Check {
  const { synchronous = 'full', fsync = 'on', synchronous_commit = 'on' } = facts
  if (synchronous !== 'full' || fsync !== 'on') {
    const summary = 'Commits are not synced to disk: a power failure loses acknowledged messages.'
    return wrong('syncs', summary, 'Set fsync = on in the database server and restart it.')
  }
  if (synchronous_commit !== 'on' && synchronous_commit !== 'remote_apply') {
    const summary = `Sessions start with synchronous_commit = ${synchronous_commit}; every append sets it to on for itself.`
    return warning('syncs', summary, 'Set it to on for the role, so that other writers are safe too.')
  }
  return ok('syncs', 'Commits are synced before they are acknowledged.')
}

async function writable(store: Store): Promise<Check> {
  try {
    await store.probe()
    return ok('writes', 'The database takes writes.')
  } catch (error) {
    if (!(error instanceof StoreFailure)) throw error
    const summary = `The database takes no writes: ${error.message}.`
    return wrong('writes', summary, 'docs/operating/troubleshooting.md lists what to do for each cause.')
  }
}

async function structure(store: Store, url: string): Promise<Check[]> {
  const found = await store.diagnosis.structure()
  if (found.length === 0) return [ok('structure', 'The structure of the database is intact.')]
  return Array.from(
    Map.groupBy(found, ({ part }) => part),
    ([part, problems]) => {
      const places = Array.from(new Set(problems.map(({ table }) => table ?? 'no table by name'))).join(', ')
      const words = problems.slice(0, 3).map(({ problem }) => problem)
      const summary = `${problems[0]!.file} is damaged in ${places}: ${words.join('; ')}${problems.length > 3 ? '; …' : ''}.`
      if (part === 'journal') return wrong('structure', summary, salvageAdvice(url))
      return wrong(
        'index structure',
        summary,
        'The index is made of the messages, and none is lost. Run: ./intray reindex',
      )
    },
  )
}

/**
 * The last id to check. Rows above the watermark may be uncommitted, or their keys missing, but only while servers run.
 */
async function journalEnd(store: Store | null, side: CopySide): Promise<{ newest: number; unseen: number }> {
  const last = (await side.identity()).lastIds.events
  if (store === null || (await store.nodes.live()).length === 0) return { newest: last, unseen: 0 }
  const newest = await store.events.watermark()
  return { newest, unseen: Math.max(0, last - newest) }
}

/** `store`: null if it cannot be opened. */
async function journal(store: Store | null, side: CopySide, url: string, sample: number | null): Promise<Check[]> {
  const progress = createProgress('doctor')
  try {
    const { newest, unseen } = await journalEnd(store, side)
    const found = await scanJournal(side, { newest, sample, onProgress: (text) => progress.say(text) })
    const lost = [...found.lost]
    const others = side.tables.filter(({ name }) => sample === null && name !== 'events' && name !== 'dedupe')
    for (const table of others) lost.push(...(await lostRows(side, table, progress.say)))
    const checks = [readable(lost, url), bytes(found, sample, unseen), references(found)]
    return sample === null ? [...checks, keys(found)] : checks
  } finally {
    progress.end()
  }
}

function readable(lost: readonly LostRows[], url: string): Check {
  if (lost.length === 0) return ok('rows', 'Every row can be read.')
  const shown = lost
    .slice(0, SHOWN)
    .map(({ table, range, ids }) => `${table}: ${range}${ids === null ? '' : ` (${ids})`}`)
  const more = lost.length > SHOWN ? '; …' : ''
  const summary = `Damaged pages hide rows. ${shown.join('; ')}${more}. Reads of them are answered 503 storage_damaged, and everything else works.`
  return wrong('rows', summary, salvageAdvice(url))
}

function bytes({ rows, bytes: size, erased, damaged }: ScanResult, sample: number | null, unseen: number): Check {
  const later = unseen === 0 ? '' : `; the newest ${unseen} ids were not read, because transactions may still be open`
  const scanned = `${rows} events and revisions${sample === null ? '' : ' (a sample)'}, ${size} bytes, ${erased} erased${later}`
  if (damaged.length === 0) return ok('payloads', `All payloads match their digests: ${scanned}.`)
  const summary = `${damaged.length} of ${scanned}, are damaged. They are never served: reads answer 500.`
  const advice =
    'Check the disk and the memory of the machine. Restore these events from a backup, or ask their senders to send them again under another source_ref.'
  return wrong('payloads', summary, advice, damaged)
}

function references({ disagreeing }: ScanResult): Check {
  if (disagreeing.length === 0) return ok('references', 'source_ref and channel_ref agree with the payloads.')
  const summary = `${disagreeing.length} columns disagree with their payload, whose digest is right.`
  return wrong('references', summary, 'The payload is right. Restore a backup if the disk is damaged.', disagreeing)
}

function keys({ keys: found, keysWithoutEvent }: ScanResult): Check {
  const without = keysWithoutEvent > 0 ? ` ${keysWithoutEvent} keys have no event any more, which is fine.` : ''
  if (found.length === 0) return ok('keys', `Every event is found by its dedupe key.${without}`)
  const summary = `${found.length} events are not found by their dedupe key: a re-send would be stored again.${without}`
  return wrong('keys', summary, 'Restore a backup.', found)
}

async function index(store: Store, side: CopySide, url: string): Promise<Check> {
  const { cursor, lag, searchLag, clearing } = await store.index.progress()
  const unindexed = await store.diagnosis.unindexed()
  const { ids, ranges } = await store.diagnosis.unreadable()
  if (ids > 0) {
    const shown = ranges.map(({ first, last }) => (first === last ? `${first}` : `${first} to ${last}`)).join(', ')
    const summary = `The indexer passed over ${ids} ids, whose rows damaged pages hide: ${shown}.`
    return wrong('index', summary, salvageAdvice(url))
  }
  const marked = unindexed > 0 ? ` ${unindexed} events could not be indexed; they are kept and handed out.` : ''
  if (clearing) return warning('index', `The index is being rebuilt.${marked}`)
  if (lag === 0) {
    const search = searchLag === 0 ? '' : ` Search lacks ${searchLag} events.`
    const summary = `The index covers everything.${search}${marked}`
    return unindexed > 0
      ? warning('index', summary, "'./intray event show ID' shows the reason.")
      : ok('index', summary)
  }
  const ageS = await ageOfNext(side, cursor)
  const summary = `The index is ${lag} rows behind, the oldest of them ${ageS} s old.${marked}`
  if ((await store.nodes.live()).length === 0) {
    return warning('index', summary, 'No server is running. Start one: it indexes the rest.')
  }
  if (ageS <= OLD_LAG_S) return ok('index', summary)
  return wrong('index', summary, 'If the lag keeps growing, see the watermark check below and the log of the server.')
}

/** Age in seconds of the first row that is not indexed. */
async function ageOfNext(side: CopySide, cursor: number): Promise<number> {
  const table = side.tables.find(({ name }) => name === 'events')!
  const { rows } = await side.readStretch({ ...table, page: 1 }, { after: [cursor], upTo: null, isBackwards: false })
  const [row] = rows
  const receivedAt = row?.[Object.keys(table.columns).indexOf('received_at')]
  return typeof receivedAt === 'number' ? Math.max(0, Math.round((Date.now() - receivedAt) / 1000)) : 0
}

async function watermark(store: Store): Promise<Check> {
  const blocking = await store.diagnosis.blockingTransactions()
  const [oldest] = blocking
  if (!oldest) return ok('watermark', 'No open transaction delays readers.')
  const who = `process ${oldest.pid} (${oldest.application || 'unnamed'}, database ${oldest.database}, ${oldest.state})`
  const summary = `${blocking.length} open transactions delay readers, not intake. The oldest: ${who}, for ${Math.round(oldest.seconds)} s.`
  const advice = `End it where it was started, or run: SELECT pg_terminate_backend(${oldest.pid})`
  return (oldest.seconds > OLD_LAG_S ? wrong : warning)('watermark', summary, advice)
}

async function refusals(side: CopySide): Promise<Check> {
  const count = await side.count(side.tables.find(({ name }) => name === 'refusals')!)
  return ok('refusals', `${count} refused requests are kept with their reasons.`)
}

/** Without a schedule, other tools may make the backups. */
async function backups({ recovery }: Store, { backupTo, backupEvery }: Config): Promise<Check> {
  const last = await recovery.lastBackupAt()
  const ageMs = last === null ? Number.POSITIVE_INFINITY : Math.max(0, Date.now() - last)
  const summary =
    last === null
      ? 'No backup was written by ./intray backup.'
      : `The last backup by ./intray backup began at ${new Date(last).toISOString()}.`
  if (backupTo === null || ageMs <= LATE_BACKUPS * backupEvery) return ok('backups', summary)
  const what = `${summary} The schedule asks for one every ${formatDuration(backupEvery)}.`
  return wrong('backups', what, `The log of the server says why. Try it: ./intray backup ${shellWord(backupTo)}`)
}

/** Each message writes a second row while a copy runs: one that was cut off must not leave that behind. */
async function copies(side: CopySide): Promise<Check[]> {
  const noting = await side.noting()
  if (!noting) return []
  const summary = `What changes is noted for a copy of this database, last seen at ${new Date(noting.seenAt).toISOString()}.`
  if (Date.now() - noting.seenAt <= NOTING_STALE_MS) return [ok('copy', summary)]
  const advice = 'It was cut off. Run the same ./intray copy again, or give it up: ./intray copy --release URL'
  return [warning('copy', summary, advice)]
}

const SIGNS: Record<Verdict, string> = { ok: 'ok     ', warning: 'warning', wrong: 'WRONG  ' }

function describe({ name, verdict, summary, advice, events = [] }: Check): string {
  const lines = [
    `${SIGNS[verdict]}  ${name}: ${summary}`,
    ...events.map(({ id, problem }) => `           event ${id}: ${problem}`),
    ...(advice === undefined ? [] : [`         → ${advice}`]),
  ]
  return lines.map((line) => `${printable(line)}\n`).join('')
}

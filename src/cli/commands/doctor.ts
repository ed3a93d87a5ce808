// `./intray doctor`: looks at a database from top to bottom and says in sentences what is well, what is not, and what to do.
// Works beside running servers and without one. Exit code 0: nothing is wrong. 1: something is.

import { parseArgs } from 'node:util'
import { type Config, loadConfig } from '../../config.ts'
import { StoreFailure } from '../../store/contract/failure.ts'
import type { CopySide } from '../../store/contract/copy.ts'
import type { Store } from '../../store/contract/store.ts'
import { openCopySide, openStore } from '../../store/open.ts'
import { type Command, UsageError } from '../command.ts'
import { type RowProblem, type ScanResult, scanJournal } from '../doctor-scan.ts'
import { createProgress, print, printable, printJson } from '../output.ts'

const HELP = `
Usage: ./intray doctor [--sample N] [--json]

Checks a database: that it opens and takes writes, that commits are synced, that every payload still has the digest it came
in with, that references and dedupe keys agree with the payloads, how far the index is, and who holds it up. Reads every
event once; servers may run meanwhile. Exit code 1 if anything is wrong.

  --sample N  Look at about N events, spread evenly, instead of all; dedupe keys are then not looked at.
  --json      Print one JSON object.`

type Verdict = 'ok' | 'warning' | 'wrong'

interface Check {
  readonly name: string
  readonly verdict: Verdict
  readonly summary: string
  /** What to do about it. */
  readonly advice?: string
  /** The first events it is about. */
  readonly events?: readonly RowProblem[]
}

const SHOWN = 20
const OLD_LAG_S = 60

export const doctor: Command = {
  name: 'doctor',
  summary: 'Check a database: bytes, keys, syncs, index.',
  help: HELP,
  async run(args) {
    const { values } = parseArgs({
      args: [...args],
      options: { sample: { type: 'string' }, json: { type: 'boolean' } },
    })
    const sample = sampleOf(values.sample)
    const checks = await examine(loadConfig(process.env), sample)
    const isWell = checks.every(({ verdict }) => verdict !== 'wrong')
    if (values.json) printJson({ ok: isWell, checks })
    else print(`${checks.map(describe).join('')}\n${isWell ? 'Nothing is wrong.' : 'Something is wrong: see above.'}\n`)
    return isWell ? 0 : 1
  },
}

function sampleOf(text: string | undefined): number | null {
  if (text === undefined) return null
  const count = /^\d{1,9}$/.test(text) ? Number(text) : 0
  if (count === 0) throw new UsageError('--sample must be a whole number from 1 on.')
  return count
}

async function examine({ databaseUrl }: Pick<Config, 'databaseUrl'>, sample: number | null): Promise<Check[]> {
  // Opened first: it makes no database where there is none.
  const side = await openCopySide(databaseUrl, { mustExist: true })
  try {
    const store = await openStore(databaseUrl, { role: 'tool' })
    try {
      return [
        opened(store),
        synced(store),
        await writable(store),
        await structure(store),
        ...(await journal(store, side, sample)),
        await index(store, side),
        await watermark(store),
        await refusals(side),
      ]
    } finally {
      await store.close()
    }
  } finally {
    await side.close()
  }
}

function opened({ facts }: Store): Check {
  const shown = Object.entries(facts).map(([name, value]) => `${name}=${value}`)
  return { name: 'opens', verdict: 'ok', summary: `The database opens: ${shown.join(', ')}.` }
}

/** By what each driver says of itself: a setting it does not have is not looked at. */
function synced({ facts }: Store): Check {
  const name = 'syncs'
  const { synchronous = 'full', fsync = 'on', synchronous_commit = 'on' } = facts
  if (synchronous !== 'full' || fsync !== 'on') {
    const summary = 'Commits are not synced to disk: a power cut loses messages that were acknowledged.'
    return { name, verdict: 'wrong', summary, advice: 'Set fsync = on in the database server and restart it.' }
  }
  if (synchronous_commit !== 'on' && synchronous_commit !== 'remote_apply') {
    const summary = `Sessions begin with synchronous_commit = ${synchronous_commit}; every append sets it on for itself.`
    return { name, verdict: 'warning', summary, advice: 'Set it on for the role, so that other writers are safe too.' }
  }
  return { name, verdict: 'ok', summary: 'Commits are synced before they are acknowledged.' }
}

async function writable(store: Store): Promise<Check> {
  const name = 'writes'
  try {
    await store.probe()
    return { name, verdict: 'ok', summary: 'It takes writes.' }
  } catch (error) {
    if (!(error instanceof StoreFailure)) throw error
    const summary = `It takes no writes: ${error.message}.`
    return {
      name,
      verdict: 'wrong',
      summary,
      advice: 'Free some space, or see docs/operating/troubleshooting.md.',
    }
  }
}

async function structure(store: Store): Promise<Check> {
  const name = 'structure'
  const found = await store.diagnosis.structure()
  if (found.length === 0)
    return { name, verdict: 'ok', summary: 'The database finds nothing wrong with its structure.' }
  const summary = `The database is damaged: ${found.slice(0, 3).join('; ')}${found.length > 3 ? '; …' : ''}.`
  return {
    name,
    verdict: 'wrong',
    summary,
    advice: 'Stop the server, keep the files, restore a backup; ask senders to send again what came since.',
  }
}

/**
 * The last id to look at. Beside running servers rows above the watermark may not be committed yet, or their keys not; without
 * servers no such row can be under way.
 */
async function journalEnd(store: Store, side: CopySide): Promise<{ newest: number; unseen: number }> {
  const last = (await side.identity()).lastIds.events
  if ((await store.nodes.live()).length === 0) return { newest: last, unseen: 0 }
  const newest = await store.events.watermark()
  return { newest, unseen: Math.max(0, last - newest) }
}

async function journal(store: Store, side: CopySide, sample: number | null): Promise<Check[]> {
  const progress = createProgress('doctor')
  try {
    const { newest, unseen } = await journalEnd(store, side)
    const found = await scanJournal(side, { newest, sample, onProgress: (text) => progress.say(text) })
    progress.end()
    return [bytes(found, sample, unseen), references(found), ...(sample === null ? [keys(found)] : [])]
  } catch (error) {
    progress.end()
    if (!(error instanceof StoreFailure)) throw error
    const summary = `The journal cannot be read to its end: ${error.message}.`
    return [
      {
        name: 'payloads',
        verdict: 'wrong',
        summary,
        advice: 'Restore a backup; what cannot be read is not served either.',
      },
    ]
  }
}

function bytes({ rows, bytes: size, erased, damaged }: ScanResult, sample: number | null, unseen: number): Check {
  const name = 'payloads'
  const later = unseen === 0 ? '' : `; the newest ${unseen} ids were not read, because transactions may still be open`
  const looked = `${rows} events and revisions${sample === null ? '' : ' (a sample)'}, ${size} bytes, ${erased} erased${later}`
  if (damaged.length === 0) return { name, verdict: 'ok', summary: `All payloads match their digests: ${looked}.` }
  const summary = `${damaged.length} of ${looked}, are damaged. They are never served: reads answer 500.`
  const advice =
    'Look at the disk and the memory of the machine. Take these events from a backup, or ask their senders to send them again under another source_ref.'
  return { name, verdict: 'wrong', summary, advice, events: damaged.slice(0, SHOWN) }
}

function references({ disagreeing }: ScanResult): Check {
  const name = 'references'
  if (disagreeing.length === 0)
    return { name, verdict: 'ok', summary: 'source_ref and channel_ref are those of the payloads.' }
  const summary = `${disagreeing.length} times a column says something else than the payload, whose digest is right.`
  const advice = 'The payload is the truth. Restore a backup if these came from a damaged disk.'
  return { name, verdict: 'wrong', summary, advice, events: disagreeing.slice(0, SHOWN) }
}

function keys({ keys: found, keysWithoutEvent }: ScanResult): Check {
  const name = 'keys'
  const without = keysWithoutEvent > 0 ? ` ${keysWithoutEvent} keys outlived their event.` : ''
  if (found.length === 0) return { name, verdict: 'ok', summary: `Every event is found by its dedupe key.${without}` }
  const summary = `${found.length} events are not found by their dedupe key: a re-send of them would be stored again.${without}`
  return { name, verdict: 'wrong', summary, advice: 'Restore a backup.', events: found.slice(0, SHOWN) }
}

async function index(store: Store, side: CopySide): Promise<Check> {
  const name = 'index'
  const { cursor, lag, clearing } = await store.index.progress()
  const unindexed = await store.diagnosis.unindexed()
  const marked = unindexed > 0 ? ` ${unindexed} events could not be indexed; they are kept and handed out.` : ''
  if (clearing) return { name, verdict: 'warning', summary: `The index is being rebuilt.${marked}` }
  if (lag === 0) {
    const advice = unindexed > 0 ? { advice: "'./intray event show ID' tells why." } : {}
    return {
      name,
      verdict: unindexed > 0 ? 'warning' : 'ok',
      summary: `The index covers everything.${marked}`,
      ...advice,
    }
  }
  const ageS = await ageOfNext(side, cursor)
  const isServed = (await store.nodes.live()).length > 0
  const summary = `The index is ${lag} rows behind, the oldest of them ${ageS} s old.${marked}`
  if (!isServed)
    return { name, verdict: 'warning', summary, advice: 'No server is running: one that does will index them.' }
  const advice = ageS > OLD_LAG_S ? { advice: 'If it only grows, see the next line, and the log of the server.' } : {}
  return { name, verdict: ageS > OLD_LAG_S ? 'wrong' : 'ok', summary, ...advice }
}

/** Of the first row that is not indexed. */
async function ageOfNext(side: CopySide, cursor: number): Promise<number> {
  const table = side.tables.find(({ name }) => name === 'events')!
  const [row] = await side.read({ ...table, page: 1 }, [cursor])
  const receivedAt = row?.[Object.keys(table.columns).indexOf('received_at')]
  return typeof receivedAt === 'number' ? Math.max(0, Math.round((Date.now() - receivedAt) / 1000)) : 0
}

async function watermark(store: Store): Promise<Check> {
  const name = 'watermark'
  const blocking = await store.diagnosis.blockingTransactions()
  const [oldest] = blocking
  if (!oldest) return { name, verdict: 'ok', summary: 'No open transaction holds readers back.' }
  const who = `process ${oldest.pid} (${oldest.application || 'unnamed'}, database ${oldest.database}, ${oldest.state})`
  const summary = `${blocking.length} open transactions hold readers back, not intake. The oldest: ${who}, for ${Math.round(oldest.seconds)} s.`
  const advice = `End it where it was begun, or: SELECT pg_terminate_backend(${oldest.pid})`
  return { name, verdict: oldest.seconds > OLD_LAG_S ? 'wrong' : 'warning', summary, advice }
}

async function refusals(side: CopySide): Promise<Check> {
  const count = await side.count(side.tables.find(({ name }) => name === 'refusals')!)
  return { name: 'refusals', verdict: 'ok', summary: `${count} refused requests are kept, with their reasons.` }
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

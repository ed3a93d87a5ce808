// `bench sustained`: a load for minutes at a share of the rate of bare node:http, on a store that is already filled.
// Does the index keep up? Bare is measured in between, while the server is stopped, so that both see the machine at the
// same speed.
// Promises: bounded in time; children and temporary folders are removed in any case.

import { setTimeout as interval } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { type Contestant, startBare } from './contestants/contestant.ts'
import { STORES, type StoreName, startDatabases, storeNamed } from './contestants/databases.ts'
import { startFilledIntray } from './contestants/filled-intray.ts'
import type { Intray } from './contestants/intray.ts'
import { drainIndex } from './intake/fill.ts'
import { LoadGenerator } from './load/generator.ts'
import type { LoadReport } from './load/job.ts'
import { machineFacts } from './machine.ts'
import { isDisturbed, machineTicks, stealShare } from './proc.ts'
import { Scope } from './scope.ts'
import { mean, median } from './stats.ts'
import { table } from './table.ts'
import { UsageError } from './usage-error.ts'

const CONNECTIONS = 64
const MIN_SHARE = 0.3
/**
 * The speed of a shared machine changes within seconds: bare runs before and after each piece of the load, whose rate
 * follows the mean of the last few.
 */
const BARE_SECONDS = 3
const PIECE_SECONDS = 15
const PACE_ROUNDS = 4
/** A disturbed load is repeated; the last one counts in any case. */
const MAX_LOADS = 3
/** Into each piece. Reading the lag is a command beside the server, which costs half a second of a core. */
const SAMPLE_LAG_AFTER_MS = 10_000
/**
 * The index works in steps and pauses in between: its lag varies by the messages that arrive meanwhile. A lag that
 * grows by more keeps growing.
 */
const PAUSE_SECONDS = 2
const CONVERSATIONS = 40_000

const HELP = `Usage: npm run bench -- sustained [options]

  --store <name>      ${STORES.join(', ')} (sqlite)
  --events <n>        stored and indexed before the load begins (1000000)
  --seconds <n>       how long it lasts, rounded up to pieces of ${PIECE_SECONDS} s with a round of bare between them (180)
  --share <x>         of the rate that bare node:http takes; a little more than must be held (0.32)
  --folder <path>     where the temporary folder is made; must be a real disk (/tmp)
  --help`

interface Options {
  readonly store: StoreName
  readonly events: number
  readonly seconds: number
  readonly share: number
  readonly folder: string
}

export async function runSustained(argv: readonly string[]): Promise<number> {
  const options = parse(argv)
  if (!options) {
    console.log(HELP)
    return 0
  }
  const scope = new Scope(options.folder)
  try {
    const { cpu, cores, node } = machineFacts()
    console.log(`${cpu}, ${cores} cores, Node ${node}, ${options.store}\n`)
    console.log(await measure(scope, options))
    return 0
  } finally {
    await scope.close()
  }
}

function parse(argv: readonly string[]): Options | null {
  const text = { type: 'string' } as const
  const options = { store: text, events: text, seconds: text, share: text, folder: text } as const
  const { values } = parseArgs({ args: [...argv], options: { ...options, help: { type: 'boolean', short: 'h' } } })
  if (values.help) return null
  const number = (name: string, value: string | undefined, fallback: number, least: number): number => {
    const given = Number(value ?? fallback)
    if (!(given >= least)) throw new UsageError(`--${name} must be a number from ${least} on.`)
    return given
  }
  return {
    store: storeNamed(values.store),
    events: number('events', values.events, 1_000_000, 0),
    seconds: number('seconds', values.seconds, 180, 2 * PIECE_SECONDS),
    share: number('share', values.share, 0.32, 0.01),
    folder: values.folder ?? '/tmp',
  }
}

function say(line: string): void {
  process.stderr.write(`bench: ${line}\n`)
}

async function measure(scope: Scope, { store, events, seconds, share }: Options): Promise<string> {
  const load = new LoadGenerator(scope)
  const bare = await startBare(scope)
  const databases = await startDatabases(store, scope)
  const intray = await startFilledIntray(scope, databases, events, (n) => `page ${n % CONVERSATIONS}`)
  const runs: Run[] = []
  do {
    if (runs.length > 0) say(`${percent(runs.at(-1)!.stealShare)} of the machine was stolen: once more`)
    runs.push(await runLoad(load, bare, intray, { seconds, share }))
  } while (isDisturbed(runs.at(-1)!) && runs.at(-1)!.drainedMs !== null && runs.length < MAX_LOADS)
  await scope.stop(intray.child)
  await databases.close()
  const errors = runs.reduce((sum, { errors }) => sum + errors, 0)
  return [
    verdicts(runs.at(-1)!, errors),
    ...runs.slice(0, -1).map((one) => `\ndisturbed, and made again: ${describe(one)}`),
  ].join('\n')
}

interface Run {
  readonly rate: number
  readonly bareRate: number
  readonly pieces: readonly Piece[]
  readonly errors: number
  /** The larger of the two shares: during bare, and during the load. */
  readonly stealShare: number
  readonly drainedMs: number | null
}

interface Measured {
  readonly report: LoadReport
  readonly stealShare: number | null
}

interface Piece extends Measured {
  readonly lag: number
}

/** Alternates bare and load. The index cannot catch up meanwhile: Intray is stopped, though its clock runs on. */
async function runLoad(
  load: LoadGenerator,
  bare: Contestant,
  intray: Intray,
  { seconds, share }: Pick<Options, 'seconds' | 'share'>,
): Promise<Run> {
  // Warm-up.
  await runBare(load, bare)
  const rounds: Measured[] = []
  const ratesOf = (measured: readonly Measured[]) => measured.map(({ report }) => report.rate)
  while (rounds.length < PACE_ROUNDS) rounds.push(await runBare(load, bare))
  const pieces: Piece[] = []
  while (pieces.length * PIECE_SECONDS < seconds) {
    const pace = mean(ratesOf(rounds.slice(-PACE_ROUNDS)))
    const piece = await runPiece(load, intray, share * pace)
    intray.child.kill('SIGSTOP')
    try {
      rounds.push(await runBare(load, bare))
    } finally {
      intray.child.kill('SIGCONT')
    }
    say(`bare ${pace.toFixed(0)}/s, load ${piece.report.rate.toFixed(0)}/s, lag ${piece.lag.toLocaleString('en')}`)
    pieces.push(piece)
  }
  const { drainedMs } = await drainIndex(intray)
  // For each piece, the rounds before and after it.
  const beside = rounds.slice(PACE_ROUNDS - 1)
  return {
    rate: mean(ratesOf(pieces)),
    bareRate: mean([...ratesOf(beside.slice(1)), ...ratesOf(beside.slice(0, -1))]),
    pieces,
    errors: [...pieces, ...rounds].reduce((sum, { report }) => sum + report.errorCount, 0),
    stealShare: Math.max(stolenOf(beside), stolenOf(pieces)),
    drainedMs,
  }
}

const stolenOf = (measured: readonly Measured[]) => mean(measured.map((one) => one.stealShare ?? 0))

async function runBare(load: LoadGenerator, { port, token }: Contestant): Promise<Measured> {
  const ticks = machineTicks()
  const report = await load.run({ port, token, connections: CONNECTIONS, seconds: BARE_SECONDS, count: null })
  return { report, stealShare: stealShare(ticks, machineTicks()) }
}

async function runPiece(load: LoadGenerator, intray: Intray, rate: number): Promise<Piece> {
  const { port, token } = intray
  const ticks = machineTicks()
  const running = load.run({ port, token, connections: CONNECTIONS, seconds: PIECE_SECONDS, count: null, rate })
  let isOver = false
  const over = running.then(() => {
    isOver = true
  })
  over.catch(() => {})
  await Promise.race([over, interval(SAMPLE_LAG_AFTER_MS)])
  const { lag } = await intray.cli(['reindex', '--status', '--json'])
  if (isOver) throw new Error('The lag was measured after the load was over: this machine is too slow for this bench.')
  return { report: await running, lag: Number(lag), stealShare: stealShare(ticks, machineTicks()) }
}

/** `errors`: of all loads, including disturbed ones. */
function verdicts(run: Run, errors: number): string {
  const { rate, bareRate } = run
  const growth = growthOf(run)
  const rows = [
    [
      'sustained / bare',
      (rate / bareRate).toFixed(2),
      `>= ${MIN_SHARE.toFixed(2)}`,
      verdict(rate >= MIN_SHARE * bareRate),
    ],
    ['errors', String(errors), '0', verdict(errors === 0)],
    [
      'lag, second half less first (medians)',
      Math.round(growth).toLocaleString('en'),
      `<= ${Math.round(PAUSE_SECONDS * rate).toLocaleString('en')} (${PAUSE_SECONDS} s of load)`,
      verdict(growth <= PAUSE_SECONDS * rate),
    ],
  ]
  const columns = ['', '', 'must be', ''].map((title) => ({ title }))
  return `${table(columns, rows)}\n\n${describe(run)}`
}

function growthOf({ pieces }: Run): number {
  const half = pieces.length >> 1
  const [early, late] = [pieces.slice(0, half), pieces.slice(half)].map((part) => median(part.map(({ lag }) => lag)))
  return late! - early!
}

function describe({ rate, bareRate, pieces, stealShare: stolen, drainedMs }: Run): string {
  const p50Ms = median(pieces.map(({ report }) => report.p50Ms))
  const p99Ms = Math.max(...pieces.map(({ report }) => report.p99Ms))
  return [
    `${rate.toFixed(0)}/s, bare ${bareRate.toFixed(0)}/s, p50 ${p50Ms.toFixed(2)} ms, p99 up to ${p99Ms.toFixed(1)} ms, steal ${percent(stolen)}`,
    `lag every ${PIECE_SECONDS} s: ${pieces.map(({ lag }) => lag.toLocaleString('en')).join('; ')}; ${drainedMs === null ? 'never 0' : `0 after ${(drainedMs / 1000).toFixed(1)} s`}`,
  ].join('\n')
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`
}

function verdict(isHeld: boolean): string {
  return isHeld ? 'pass' : 'FAIL'
}

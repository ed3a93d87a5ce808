// `bench sustained`: a share of what bare node:http takes, for minutes, on a store that is full already. Does the index keep up? Bare is
// measured in between, with the server stopped meanwhile, so that both see the machine at the same pace.
// Promises: bounded in time; children and temporary folders are gone afterwards, whatever happened.

import { setTimeout as interval } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { type Contestant, startBare } from './contestants/contestant.ts'
import { STORES, type StoreName, startDatabases, storeNamed } from './contestants/databases.ts'
import { startFilled } from './contestants/filled.ts'
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
const LEAST = 0.3
/** The pace of a shared machine changes within seconds: bare runs before each piece of the load, which follows the mean of the last few. */
const BARE_SECONDS = 3
const PIECE_SECONDS = 15
const PACE_ROUNDS = 4
/** A round of bare that is disturbed is run again, a while later, so often in all. */
const BARE_AGAIN = 60
const BARE_AGAIN_MS = 10_000
/** All of the load, too; the last one counts, however it was. */
const LOADS = 3
/** Of each piece. Asking is a command beside the server, which costs half a second of a core. */
const LOOK_AFTER_MS = 12_000
/** The index works in steps and rests in between: its lag goes up and down by what comes in meanwhile. A lag that grows by more goes on growing. */
const PAUSE_SECONDS = 2
const CONVERSATIONS = 40_000

const HELP = `Usage: npm run bench -- sustained [options]

  --store <name>      ${STORES.join(', ')} (sqlite)
  --events <n>        stored and indexed before the load begins (1000000)
  --seconds <n>       how long it lasts, in pieces of ${PIECE_SECONDS} s with a round of bare before each (180)
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
    seconds: number('seconds', values.seconds, 180, 20),
    share: number('share', values.share, 0.32, 0.01),
    folder: values.folder ?? '/tmp',
  }
}

function say(line: string): void {
  process.stderr.write(`bench: ${line}\n`)
}

async function measure(scope: Scope, { store, events, seconds, share }: Options): Promise<string> {
  const load = new LoadGenerator(scope)
  const bare = new BareRounds(load, await startBare(scope))
  const databases = await startDatabases(store, scope)
  const intray = await startFilled(scope, databases, events, (n) => `page ${n % CONVERSATIONS}`)
  const runs: Run[] = []
  do {
    if (runs.length > 0) say(`${(100 * runs.at(-1)!.stealShare!).toFixed(0)} % of the machine was stolen: once more`)
    runs.push(await loaded(load, bare, intray, { seconds, share }))
  } while (isDisturbed(runs.at(-1)!) && runs.at(-1)!.drainedMs !== null && runs.length < LOADS)
  await scope.stop(intray.child)
  await databases.close()
  const errors = runs.reduce((sum, { errors }) => sum + errors, 0)
  return [
    verdicts(runs.at(-1)!, errors),
    ...runs.slice(0, -1).map((one) => `\ndisturbed, and made again: ${described(one)}`),
    ...(bare.disturbed > 0 ? [`\nwarning: ${bare.disturbed} rounds of bare count although they were disturbed`] : []),
  ].join('\n')
}

interface Run {
  readonly rate: number
  readonly bareRate: number
  readonly pieces: readonly Piece[]
  readonly errors: number
  readonly stealShare: number | null
  readonly drainedMs: number | null
}

interface Piece {
  readonly report: LoadReport
  readonly lag: number
  readonly stealShare: number | null
}

/** Bare and load in turns. For Intray it is one load: it stands still, as a process, while bare has the machine. */
async function loaded(
  load: LoadGenerator,
  bare: BareRounds,
  intray: Intray,
  { seconds, share }: Pick<Options, 'seconds' | 'share'>,
): Promise<Run> {
  // The first is for warming up.
  const before = (await bare.rates(1 + PACE_ROUNDS)).slice(1)
  const beside: number[] = []
  const pieces: Piece[] = []
  while (pieces.length * PIECE_SECONDS < seconds) {
    intray.child.kill('SIGSTOP')
    try {
      beside.push(...(await bare.rates(1)))
    } finally {
      intray.child.kill('SIGCONT')
    }
    const pace = mean([...before, ...beside].slice(-PACE_ROUNDS))
    const piece = await underLoad(load, intray, share * pace)
    say(`bare ${pace.toFixed(0)}/s, load ${piece.report.rate.toFixed(0)}/s, lag ${piece.lag.toLocaleString('en')}`)
    pieces.push(piece)
  }
  const { drainedMs } = await drainIndex(intray)
  return {
    rate: mean(pieces.map(({ report }) => report.rate)),
    bareRate: mean(beside),
    pieces,
    errors: pieces.reduce((sum, { report }) => sum + report.errorCount, 0),
    stealShare: mean(pieces.map((piece) => piece.stealShare ?? 0)),
    drainedMs,
  }
}

async function underLoad(load: LoadGenerator, intray: Intray, rate: number): Promise<Piece> {
  const { port, token } = intray
  const ticks = machineTicks()
  const running = load.run({ port, token, connections: CONNECTIONS, seconds: PIECE_SECONDS, count: null, rate })
  await Promise.race([running, interval(LOOK_AFTER_MS)])
  const { lag } = await intray.cli(['reindex', '--status', '--json'])
  const report = await running
  return { report, lag: Number(lag), stealShare: stealShare(ticks, machineTicks()) }
}

/** `errors`: of all loads, those that were disturbed as well. */
function verdicts(run: Run, errors: number): string {
  const { rate, bareRate } = run
  const growth = growthOf(run)
  const rows = [
    ['sustained / bare', (rate / bareRate).toFixed(2), `>= ${LEAST.toFixed(2)}`, verdict(rate >= LEAST * bareRate)],
    ['errors', String(errors), '0', verdict(errors === 0)],
    [
      'lag, second half less first (medians)',
      Math.round(growth).toLocaleString('en'),
      `<= ${Math.round(PAUSE_SECONDS * rate).toLocaleString('en')} (${PAUSE_SECONDS} s of load)`,
      verdict(growth <= PAUSE_SECONDS * rate),
    ],
  ]
  const columns = ['', '', 'must be', ''].map((title) => ({ title }))
  return `${table(columns, rows)}\n\n${described(run)}`
}

function growthOf({ pieces }: Run): number {
  const half = pieces.length >> 1
  const [early, late] = [pieces.slice(0, half), pieces.slice(half)].map((part) => median(part.map(({ lag }) => lag)))
  return late! - early!
}

function described({ rate, bareRate, pieces, stealShare: stolen, drainedMs }: Run): string {
  const worst = (of: (report: LoadReport) => number) => Math.max(...pieces.map(({ report }) => of(report)))
  return [
    `${rate.toFixed(0)}/s, bare ${bareRate.toFixed(0)}/s, p50 ${median(pieces.map(({ report }) => report.p50Ms)).toFixed(2)} ms, p99 up to ${worst(({ p99Ms }) => p99Ms).toFixed(1)} ms, steal ${((stolen ?? 0) * 100).toFixed(1)} %`,
    `lag every ${PIECE_SECONDS} s: ${pieces.map(({ lag }) => lag.toLocaleString('en')).join('; ')}; 0 after ${((drainedMs ?? Number.NaN) / 1000).toFixed(1)} s`,
  ].join('\n')
}

function verdict(isHeld: boolean): string {
  return isHeld ? 'pass' : 'FAIL'
}

/** What bare takes, in rounds that nobody disturbed as long as there is patience left. */
class BareRounds {
  /** Rounds that count nevertheless. */
  disturbed = 0
  readonly #load: LoadGenerator
  readonly #bare: Contestant
  #patience = BARE_AGAIN

  constructor(load: LoadGenerator, bare: Contestant) {
    this.#load = load
    this.#bare = bare
  }

  async rates(count: number): Promise<number[]> {
    const rates: number[] = []
    while (rates.length < count) {
      const ticks = machineTicks()
      const { rate } = await this.#round()
      const isLoud = isDisturbed({ stealShare: stealShare(ticks, machineTicks()) })
      if (isLoud && this.#patience-- > 0) {
        await interval(BARE_AGAIN_MS)
        continue
      }
      if (isLoud) this.disturbed += 1
      rates.push(rate)
    }
    return rates
  }

  #round(): Promise<LoadReport> {
    const { port, token } = this.#bare
    return this.#load.run({ port, token, connections: CONNECTIONS, seconds: BARE_SECONDS, count: null })
  }
}

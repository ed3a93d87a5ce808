// `bench sustained`: a share of what bare node:http takes, for minutes, on a store that is full already. Does the index keep up?
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

const HELP = `Usage: npm run bench -- sustained [options]

  --store <name>      ${STORES.join(', ')} (sqlite)
  --events <n>        stored and indexed before the load begins (1000000)
  --seconds <n>       how long it lasts (180)
  --share <x>         of the rate that bare node:http takes; a little more than must be held (0.34)
  --folder <path>     where the temporary folder is made; must be a real disk (/tmp)
  --help`

const CONNECTIONS = 64
const LEAST = 0.3
/** Many and short, and their mean: the pace of a shared machine changes within seconds, and the load lasts for minutes. */
const BARE_ROUNDS = 10
const BARE_SECONDS = 3
/** A round of bare that is disturbed is run again, a while later, so often in all: the load begins in a quiet minute if there is one. */
const BARE_AGAIN = 60
const BARE_AGAIN_MS = 10_000
/** The load, too; the last one counts, however it was. */
const LOADS = 3
/** Asking is a command beside the server, which costs half a second of a core. */
const LOOK_EVERY_MS = 15_000
/** The index works in steps and rests in between: its lag goes up and down by what comes in meanwhile. A lag that grows by more goes on growing. */
const PAUSE_SECONDS = 2
const CONVERSATIONS = 40_000

interface Options {
  readonly store: StoreName
  readonly events: number
  readonly seconds: number
  readonly share: number
  readonly folder: string
}

interface Sample {
  readonly second: number
  readonly lag: number
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
    share: number('share', values.share, 0.34, 0.01),
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
  const intray = await startFilled(scope, databases, events, (n) => `page ${n % CONVERSATIONS}`)
  const bareRounds = new BareRounds(load, bare)
  const runs: Run[] = []
  do {
    if (runs.length > 0) say(`${(100 * runs.at(-1)!.stealShare!).toFixed(0)} % of the machine was stolen: once more`)
    runs.push(await loaded(load, bareRounds, intray, { seconds, share }))
  } while (isDisturbed(runs.at(-1)!) && runs.at(-1)!.drainedMs !== null && runs.length < LOADS)
  await scope.stop(intray.child)
  await databases.close()
  const errors = runs.reduce((sum, { report }) => sum + report.errorCount, 0)
  const { disturbed } = bareRounds
  return [
    verdicts(runs.at(-1)!, errors),
    ...runs.slice(0, -1).map((one) => `\ndisturbed, and made again: ${described(one)}`),
    ...(disturbed > 0 ? [`\nwarning: ${disturbed} rounds of bare count although they were disturbed`] : []),
  ].join('\n')
}

interface Run {
  readonly report: LoadReport
  readonly bareRate: number
  readonly samples: readonly Sample[]
  readonly stealShare: number | null
  readonly drainedMs: number | null
}

async function loaded(
  load: LoadGenerator,
  bareRounds: BareRounds,
  intray: Intray,
  { seconds, share }: Pick<Options, 'seconds' | 'share'>,
): Promise<Run> {
  const before = await bareRounds.rates()
  const rate = share * mean(before)
  say(`bare takes ${mean(before).toFixed(0)}/s; ${rate.toFixed(0)}/s for ${seconds} s`)
  const ticks = machineTicks()
  const { report, samples } = await underLoad(load, intray, rate, seconds)
  const stolen = stealShare(ticks, machineTicks())
  const { drainedMs } = await drainIndex(intray)
  // The machine may have become faster or slower meanwhile.
  const bareRate = mean([...before, ...(await bareRounds.rates())])
  return { report, bareRate, samples, stealShare: stolen, drainedMs }
}

/** `errors`: of all loads, those that were disturbed as well. */
function verdicts(run: Run, errors: number): string {
  const { report, bareRate } = run
  const growth = growthOf(run)
  const rows = [
    [
      'sustained / bare',
      (report.rate / bareRate).toFixed(2),
      `>= ${LEAST.toFixed(2)}`,
      verdict(report.rate >= LEAST * bareRate),
    ],
    ['errors', String(errors), '0', verdict(errors === 0)],
    [
      'lag, second half less first (medians)',
      Math.round(growth).toLocaleString('en'),
      `<= ${Math.round(PAUSE_SECONDS * report.rate).toLocaleString('en')} (${PAUSE_SECONDS} s of load)`,
      verdict(growth <= PAUSE_SECONDS * report.rate),
    ],
  ]
  const columns = ['', '', 'must be', ''].map((title) => ({ title }))
  return `${table(columns, rows)}\n\n${described(run)}`
}

function growthOf({ samples }: Run): number {
  const half = samples.length >> 1
  const [early, late] = [samples.slice(0, half), samples.slice(half)].map((part) => median(part.map(({ lag }) => lag)))
  return late! - early!
}

function described({ report, bareRate, samples, stealShare: stolen, drainedMs }: Run): string {
  const course = samples.map(({ second, lag }) => `${second.toFixed(0)} s ${lag.toLocaleString('en')}`).join(', ')
  return [
    `${report.rate.toFixed(0)}/s, bare ${bareRate.toFixed(0)}/s, p50 ${report.p50Ms.toFixed(2)} ms, p99 ${report.p99Ms.toFixed(1)} ms, steal ${((stolen ?? 0) * 100).toFixed(1)} %`,
    `lag: ${course}; 0 after ${((drainedMs ?? Number.NaN) / 1000).toFixed(1)} s`,
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

  async rates(): Promise<number[]> {
    const rates: number[] = []
    // For warming up.
    await this.#round()
    while (rates.length < BARE_ROUNDS) {
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

async function underLoad(
  load: LoadGenerator,
  intray: Intray,
  rate: number,
  seconds: number,
): Promise<{ report: LoadReport; samples: Sample[] }> {
  const { port, token } = intray
  const samples: Sample[] = []
  const startedAt = performance.now()
  const running = load.run({ port, token, connections: CONNECTIONS, seconds, count: null, rate })
  const over = new AbortController()
  const done = running.finally(() => over.abort())
  while (!over.signal.aborted) {
    await interval(LOOK_EVERY_MS, null, { signal: over.signal }).catch(() => {})
    if (over.signal.aborted) break
    const { lag } = await intray.cli(['reindex', '--status', '--json'])
    samples.push({ second: (performance.now() - startedAt) / 1000, lag: Number(lag) })
  }
  return { report: await done, samples }
}

// `bench ab`: compares this working tree (A) with another commit (B) in one run, in alternating rounds. Every scenario
// starts both sides on fresh databases, with the launcher of their own checkout, and talks to them over HTTP alone:
// their schemas may differ.
// Promises: bounded in time; children, the other checkout and temporary folders are removed in any case.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { settingsBeside, WorkBeside } from './ab/beside.ts'
import { addPackages, describeCommit, findCommit, hasChanges, writeCommit } from './ab/checkout.ts'
import { createSide, measureBurst, measureSustained, type Reading, type Side } from './ab/measure.ts'
import { AB_HELP, type AbOptions, parseAbOptions, type ScenarioName } from './ab/options.ts'
import { type AbRound, errorsOf, formatAbReport, type ScenarioResult, writeAbReport } from './ab/report.ts'
import { type Databases, startDatabases } from './contestants/databases.ts'
import { startIntray } from './contestants/intray.ts'
import { waitForIdle } from './intake/rounds.ts'
import { LoadGenerator } from './load/generator.ts'
import { machineFacts, measureFsync } from './machine.ts'
import { isDisturbed } from './proc.ts'
import { Scope } from './scope.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const FSYNCS = 500
const IDLE_WAIT_SECONDS = 10

/**
 * A checkout without built pages would build them during its first measurements. Commits without a console refuse the
 * setting.
 */
function settingsOf(root: string): Record<string, string> {
  return existsSync(join(root, 'console')) ? { INTRAY_CONSOLE: 'off' } : {}
}

type SideName = 'a' | 'b'
type Sides = Readonly<Record<SideName, Side>>

export async function runAb(argv: readonly string[]): Promise<number> {
  const options = parseAbOptions(argv)
  if (!options) {
    console.log(AB_HELP)
    return 0
  }
  const commit = await findCommit(ROOT, options.against)
  const scope = new Scope(options.folder)
  const limit = setTimeout(() => {
    say(`ended: --max-minutes ${options.maxMinutes} is over`)
    process.exit(1)
  }, options.maxMinutes * 60_000)
  try {
    const startedAt = new Date().toISOString()
    const otherRoot = join(scope.folder, 'other')
    await writeCommit(ROOT, commit, otherRoot)
    const packages = await addPackages(scope, ROOT, otherRoot)
    say(`B is checked out, its packages are ${packages}`)
    const fsyncBefore = measureFsync(scope.folder, FSYNCS)
    const scenarios = await new AbBench(options, scope, { a: ROOT, b: otherRoot }).run()
    const report = {
      startedAt,
      finishedAt: new Date().toISOString(),
      machine: machineFacts(),
      settings: options,
      a: `working tree, ${await describeCommit(ROOT, 'HEAD')}${(await hasChanges(ROOT)) ? ' (with changes)' : ''}`,
      b: await describeCommit(ROOT, commit),
      fsyncBefore,
      fsyncAfter: measureFsync(scope.folder, FSYNCS),
      scenarios,
    }
    console.log(formatAbReport(report))
    if (options.json !== null) writeAbReport(report, options.json)
    return errorsOf(report).count > 0 ? 1 : 0
  } finally {
    clearTimeout(limit)
    await scope.close()
  }
}

function say(line: string): void {
  process.stderr.write(`bench: ${line}\n`)
}

class AbBench {
  readonly #options: AbOptions
  readonly #scope: Scope
  readonly #roots: Readonly<Record<SideName, string>>
  readonly #load: LoadGenerator

  constructor(options: AbOptions, scope: Scope, roots: Readonly<Record<SideName, string>>) {
    this.#options = options
    this.#scope = scope
    this.#roots = roots
    this.#load = new LoadGenerator(scope)
  }

  async run(): Promise<ScenarioResult[]> {
    const databases = await startDatabases(this.#options.store, this.#scope)
    try {
      const results: ScenarioResult[] = []
      for (const name of this.#options.scenarios) results.push(await this.#scenario(name, databases))
      return results
    } finally {
      await databases.close()
    }
  }

  /** Both sides on fresh databases, warmed up, then measured. */
  async #scenario(name: ScenarioName, databases: Databases): Promise<ScenarioResult> {
    const { connections, seconds, messages, beside } = this.#options
    const workers = name === 'two' ? 2 : 1
    const start = async (root: string): Promise<Side> =>
      createSide(
        await startIntray(this.#scope, databases, {
          root,
          workers,
          settings: { ...settingsOf(root), ...settingsBeside(beside) },
        }),
      )
    const sides: Sides = { a: await start(this.#roots.a), b: await start(this.#roots.b) }
    const work = new WorkBeside(beside, sides.a.intray, this.#scope.folder)
    await work.prepare()
    const measureAlone = (side: Side): Promise<Reading> =>
      name === 'sustained'
        ? measureSustained(this.#load, side, connections, messages)
        : measureBurst(this.#load, side, connections, seconds)
    const measure = async (side: Side): Promise<Reading> => {
      if (beside.length === 0 || side !== sides.a) return measureAlone(side)
      const { measured, turns } = await work.during(() => measureAlone(side))
      return { ...measured, turnsBeside: turns }
    }
    for (const side of Object.values(sides)) await measure(side)
    const result = await this.#rounds(name, sides, measure)
    for (const { intray } of Object.values(sides)) await this.#scope.stop(intray.child)
    return result
  }

  /** A round in which the hypervisor stole time from either side is repeated; at most as often as there are rounds. */
  async #rounds(name: ScenarioName, sides: Sides, measure: (side: Side) => Promise<Reading>): Promise<ScenarioResult> {
    const rounds: AbRound[] = []
    const disturbed: AbRound[] = []
    while (rounds.length < this.#options.rounds) {
      await waitForIdle(IDLE_WAIT_SECONDS)
      const number = rounds.length + 1
      const readings: Partial<Record<SideName, Reading>> = {}
      for (const side of number % 2 === 1 ? (['a', 'b'] as const) : (['b', 'a'] as const)) {
        const reading = await measure(sides[side])
        sayRead(name, number, side, reading)
        readings[side] = reading
      }
      const round = readings as AbRound
      const isBad = isDisturbed(round.a) || isDisturbed(round.b)
      if (isBad && disturbed.length < this.#options.rounds) disturbed.push(round)
      else rounds.push(round)
    }
    return { name, rounds, disturbed }
  }
}

function sayRead(scenario: ScenarioName, round: number, side: SideName, reading: Reading): void {
  const { rate, messages, seconds, loadSeconds, peakMiB, errorCount, turnsBeside } = reading
  const parts = [
    `${rate.toFixed(0)}/s`,
    ...(scenario === 'sustained'
      ? [`${messages} messages, ${loadSeconds.toFixed(1)} s load + ${(seconds - loadSeconds).toFixed(1)} s index`]
      : []),
    ...(turnsBeside === undefined ? [] : [`${turnsBeside} turns beside`]),
    `peak ${peakMiB?.toFixed(0) ?? '-'} MiB`,
    ...(errorCount > 0 ? [`${errorCount} ERRORS`] : []),
    ...(isDisturbed(reading) ? [`${(100 * reading.stealShare!).toFixed(0)} % stolen`] : []),
  ]
  say(`${scenario}, round ${round}, ${side.toUpperCase()}: ${parts.join(', ')}`)
}

// The outcome of `bench ab`: a table for people, and one JSON file with every measurement.
// Promises: nothing is rounded in the JSON; disturbed measurements are marked.

import { writeFileSync } from 'node:fs'
import type { FsyncCost, MachineFacts } from '../machine.ts'
import { isDisturbed, MAX_STEAL_SHARE } from '../proc.ts'
import { table } from '../table.ts'
import { compare, type Pair } from './compare.ts'
import type { Reading } from './measure.ts'
import type { AbOptions, ScenarioName } from './options.ts'

/** Other processes used more than this share of a core: the measurement is noisy. */
const NOISY_OTHERS = 0.15

export interface AbRound {
  readonly a: Reading
  readonly b: Reading
}

export interface ScenarioResult {
  readonly name: ScenarioName
  readonly rounds: readonly AbRound[]
  /** Repeated because too much time was stolen; not counted. */
  readonly disturbed: readonly AbRound[]
}

export interface AbReport {
  readonly startedAt: string
  readonly finishedAt: string
  readonly machine: MachineFacts
  readonly settings: AbOptions
  readonly a: string
  readonly b: string
  readonly fsyncBefore: FsyncCost
  readonly fsyncAfter: FsyncCost
  readonly scenarios: readonly ScenarioResult[]
}

const TITLES: Readonly<Record<ScenarioName, string>> = { burst: 'burst', two: 'two processes', sustained: 'sustained' }
const COLUMNS = ['', 'A', 'B', 'A/B', 'min-max', 'of medians', 'of means']

const integer = (value: number): string => (Number.isFinite(value) ? Math.round(value).toLocaleString('en') : '-')
const fixed = (value: number, digits = 2): string => (Number.isFinite(value) ? value.toFixed(digits) : '-')

function row(title: string, pairs: readonly Pair[]): string[] {
  const { a, b, ratio, ofMedians, ofMeans } = compare(pairs)
  const spread = `${fixed(ratio.min)}-${fixed(ratio.max)}`
  return [title, integer(a), integer(b), fixed(ratio.median), spread, fixed(ofMedians), fixed(ofMeans)]
}

function scenarioRows({ name, rounds }: ScenarioResult): string[][] {
  const pairs = (value: (reading: Reading) => number): Pair[] =>
    rounds.map((round) => ({ a: value(round.a), b: value(round.b) }))
  return [
    row(
      `${TITLES[name]}, messages/s`,
      pairs(({ rate }) => rate),
    ),
    row(
      `${TITLES[name]}, peak memory MiB`,
      pairs(({ peakMiB }) => peakMiB ?? Number.NaN),
    ),
  ]
}

function readingsOf(rounds: readonly AbRound[]): Reading[] {
  return rounds.flatMap(({ a, b }) => [a, b])
}

export function errorsOf({ scenarios }: Pick<AbReport, 'scenarios'>): {
  readonly count: number
  readonly sample: string | null
} {
  const all = scenarios.flatMap(({ rounds, disturbed }) => readingsOf([...rounds, ...disturbed]))
  return {
    count: all.reduce((sum, { errorCount }) => sum + errorCount, 0),
    sample: all.find(({ errorSample }) => errorSample !== null)?.errorSample ?? null,
  }
}

function warnings(report: AbReport): string[] {
  const counted = report.scenarios.flatMap(({ rounds }) => readingsOf(rounds))
  const alone = counted.filter(({ turnsBeside }) => turnsBeside === undefined)
  const noisy = alone.filter((one) => (one.otherCpuSeconds ?? 0) / one.seconds > NOISY_OTHERS).length
  const stolen = counted.filter(isDisturbed).length
  const again = report.scenarios.reduce((sum, { disturbed }) => sum + disturbed.length, 0)
  const errors = errorsOf(report)
  const limit = `${100 * MAX_STEAL_SHARE} %`
  const lines: [boolean, string][] = [
    [
      noisy > 0,
      `warning: other processes took more than ${NOISY_OTHERS} cores in ${noisy} of ${alone.length} measurements`,
    ],
    [again > 0, `note: ${again} rounds were made again, since more than ${limit} of the machine was stolen meanwhile`],
    [
      stolen > 0,
      `warning: more than ${limit} was stolen in ${stolen} of the ${counted.length} measurements that count`,
    ],
    [
      errors.count > 0,
      `FAIL: ${errors.count} answers were not a proper 200; the first:\n${errors.sample ?? '(connection)'}`,
    ],
  ]
  return lines.filter(([isSo]) => isSo).map(([, text]) => text)
}

export function formatAbReport(report: AbReport): string {
  const { machine, settings, fsyncBefore, fsyncAfter, scenarios } = report
  const fsync = ({ p50Ms, p99Ms }: FsyncCost): string => `p50 ${fixed(p50Ms, 3)} ms, p99 ${fixed(p99Ms, 3)} ms`
  return [
    `A: ${report.a}`,
    `B: ${report.b}`,
    ...(settings.beside.length === 0 ? [] : [`beside A: ${settings.beside.join(' and ')}, again and again`]),
    `${settings.store}, ${settings.connections} connections, ${settings.rounds} rounds, bursts of ${settings.seconds} s, sustained loads of ${integer(settings.messages)} messages`,
    '',
    table(
      COLUMNS.map((title) => ({ title })),
      scenarios.flatMap(scenarioRows),
    ),
    '',
    'A and B are medians over the rounds; A/B is the median of each round’s own ratio.',
    `${machine.cpu}, ${machine.cores} cores, ${machine.kernel} ${machine.arch}, Node ${machine.node}`,
    `fsync before: ${fsync(fsyncBefore)}; after: ${fsync(fsyncAfter)}`,
    ...warnings(report),
  ].join('\n')
}

export function writeAbReport(report: AbReport, file: string): void {
  writeFileSync(file, `${JSON.stringify(report, null, 2)}\n`)
}

// The outcome of `bench intake`: tables for people, and one JSON file with every round.
// Promises: values are medians over rounds with their spread beside them; nothing is rounded in the JSON.

import { mkdirSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { CONTESTANTS, type ContestantName } from '../contestants/contestant.ts'
import type { FsyncCost, MachineFacts } from '../machine.ts'
import { isDisturbed, MAX_STEAL_SHARE } from '../proc.ts'
import { median, type Summary, summary } from '../stats.ts'
import { table } from '../table.ts'
import type { DrainReport, FillReport } from './fill.ts'
import type { IntakeOptions } from './options.ts'
import { type Measurement, measurementsOf, type Round } from './rounds.ts'
import { type IntakeResults, perRound, rateRatio, type Verdict } from './verdicts.ts'

/** Above this the load generator may be the bottleneck, not the server. */
const SATURATED_LOAD = 0.95
/** Other processes used more than this share of a core: the measurement is noisy. */
const NOISY_OTHERS = 0.15
/** Fsyncs of the quickest and the slowest round this far apart: another process used the disk. */
const UNSTEADY_FSYNC = 3
/** No disk is this quick: the folder is in memory, or its fsync does nothing. */
const IMPLAUSIBLE_FSYNC_MS = 0.02

export interface IntakeReport extends IntakeResults {
  readonly startedAt: string
  readonly finishedAt: string
  readonly machine: MachineFacts
  readonly settings: Omit<IntakeOptions, 'skip'> & { readonly skip: readonly string[] }
  readonly fsyncBefore: FsyncCost
  readonly fsyncAfter: FsyncCost
  readonly verdicts: readonly Verdict[]
}

const integer = (value: number): string => (Number.isFinite(value) ? Math.round(value).toLocaleString('en') : '-')
const fixed = (value: number, digits = 2): string => (Number.isFinite(value) ? value.toFixed(digits) : '-')
const spread = ({ min, max }: Summary, print: (value: number) => string): string => `${print(min)}-${print(max)}`
const known = (values: readonly (number | null)[]): number[] => values.filter((value) => value !== null)

function measurementRow(name: ContestantName, rounds: readonly Round[]): string[] {
  const all = measurementsOf(rounds, name)
  const rate = summary(all.map((m) => m.rate))
  const share = (cpu: (m: Measurement) => number | null): number =>
    median(known(all.map((m) => (cpu(m) === null ? null : cpu(m)! / m.seconds))))
  return [
    name,
    integer(rate.median),
    spread(rate, integer),
    fixed(median(perRound(rounds, [name, 'bare'], rateRatio))),
    fixed(median(all.map((m) => m.p50Ms)), 3),
    fixed(median(all.map((m) => m.p99Ms)), 3),
    fixed(share((m) => m.serverCpuSeconds)),
    fixed(share((m) => m.cpuSeconds)),
    fixed(share((m) => m.otherCpuSeconds)),
    integer(median(known(all.map((m) => m.serverRssMiB)))),
    fixed(100 * median(known(all.map((m) => m.stealShare))), 1),
    integer(all.reduce((sum, m) => sum + m.errorCount, 0)),
  ]
}

const COLUMNS = [
  '',
  'req/s',
  'min-max',
  '/ bare',
  'p50 ms',
  'p99 ms',
  'server CPU',
  'load CPU',
  'other CPU',
  'RSS MiB',
  'steal %',
  'errors',
]

function roundsTable(title: string, rounds: readonly Round[]): string[] {
  if (rounds.length === 0) return []
  const rows = CONTESTANTS.filter((name) => measurementsOf(rounds, name).length > 0).map((name) =>
    measurementRow(name, rounds),
  )
  return [
    title,
    '',
    table(
      COLUMNS.map((column) => ({ title: column })),
      rows,
    ),
    '',
  ]
}

function fillLines(fill: FillReport | null, drain: DrainReport | null): string[] {
  const rows = (fill?.marks ?? []).map((mark) => [
    integer(mark.events),
    integer(mark.rate),
    integer(mark.rssMiB ?? Number.NaN),
  ])
  const columns = [{ title: 'filled to', align: 'right' as const }, { title: 'req/s on the way' }, { title: 'RSS MiB' }]
  const drained =
    drain && (drain.drainedMs === null ? 'not seen at 0' : `0 after ${fixed(drain.drainedMs / 1000, 1)} s`)
  return [
    ...(rows.length > 0 ? [table(columns, rows), ''] : []),
    ...(drain ? [`index lag after the load: ${integer(drain.firstLag)} when first asked, ${drained}`, ''] : []),
  ]
}

function verdictTable(rows: readonly Verdict[]): string {
  return table(
    [{ title: 'bound' }, { title: 'median' }, { title: 'min-max' }, { title: 'must be', align: 'left' }, { title: '' }],
    rows.map(({ what, value, bound, pass }) => [
      what,
      fixed(value.median),
      spread(value, fixed),
      bound,
      pass ? 'pass' : 'FAIL',
    ]),
  )
}

function warnings({ throughput, filled, latency, fsyncBefore, fill }: IntakeReport): string[] {
  const measured = [...throughput, ...filled].flatMap(({ measurements }) => measurements)
  const saturated = measured.filter((m) => m.cpuSeconds / m.seconds > SATURATED_LOAD)
  const names = [...new Set(saturated.map(({ contestant }) => contestant))]
  const all = [...measured, ...latency.flatMap(({ measurements }) => measurements)]
  const fsync = summary(latency.map((round) => round.fsync.p50Ms))
  const noisy = all.filter((m) => (m.otherCpuSeconds ?? 0) / m.seconds > NOISY_OTHERS)
  const again = [...throughput, ...filled, ...latency].flatMap(({ disturbed }) => disturbed)
  const stolen = all.filter(isDisturbed)
  const failed = [...all, ...again, ...(fill ? [fill] : [])].find(({ errorCount }) => errorCount > 0)
  return [
    ...(names.length > 0
      ? [
          `warning: the load generator used a whole core against ${names.join(', ')}; the server may be quicker than shown`,
        ]
      : []),
    ...(noisy.length > 0
      ? [
          `warning: other processes took more than ${NOISY_OTHERS} cores in ${noisy.length} of ${all.length} measurements`,
        ]
      : []),
    ...(again.length > 0
      ? [
          `note: ${again.length} measurements were made again, since more than ${100 * MAX_STEAL_SHARE} % of the machine was stolen meanwhile; they stand in the JSON as \`disturbed\``,
        ]
      : []),
    ...(stolen.length > 0
      ? [
          `warning: more than ${100 * MAX_STEAL_SHARE} % was stolen in ${stolen.length} of the ${all.length} measurements that count`,
        ]
      : []),
    ...(fsync.max / fsync.min > UNSTEADY_FSYNC
      ? [
          `warning: the p50 of an fsync went from ${fixed(fsync.min, 3)} to ${fixed(fsync.max, 3)} ms between rounds at 1 connection; the bound in fsyncs shows the disk, not Intray`,
        ]
      : []),
    ...(fsyncBefore.p50Ms < IMPLAUSIBLE_FSYNC_MS
      ? ['warning: an fsync that quick is no disk; choose a real one with --folder']
      : []),
    ...(failed ? [`first answer that was not a proper 200:\n${failed.errorSample ?? '(connection)'}`] : []),
  ]
}

export function formatReport(report: IntakeReport): string {
  const { machine, settings, fsyncBefore, fsyncAfter, fill, filled } = report
  const fsync = ({ p50Ms, p99Ms }: FsyncCost): string => `p50 ${fixed(p50Ms, 3)} ms, p99 ${fixed(p99Ms, 3)} ms`
  const rounds = `${settings.rounds} rounds of ${settings.seconds} s`
  return [
    `${machine.cpu}, ${machine.cores} cores, ${machine.kernel} ${machine.arch}, Node ${machine.node}`,
    `fsync before: ${fsync(fsyncBefore)}; after: ${fsync(fsyncAfter)}`,
    '',
    ...roundsTable(`${settings.connections} connections, ${rounds}`, report.throughput),
    ...roundsTable(`1 connection, ${rounds}`, report.latency),
    ...fillLines(fill, report.drain),
    ...roundsTable(
      `${settings.connections} connections with ${integer(fill?.events ?? 0)} events stored, ${rounds}`,
      filled,
    ),
    verdictTable(report.verdicts),
    '',
    ...warnings(report),
  ]
    .join('\n')
    .trimEnd()
}

/** Writes the JSON and returns its path relative to the current folder. */
export function writeReport(report: IntakeReport): string {
  const folder = fileURLToPath(new URL('../results', import.meta.url))
  mkdirSync(folder, { recursive: true })
  const path = join(folder, `intake-${report.startedAt.replace(/[:.]/g, '-')}.json`)
  writeFileSync(path, `${JSON.stringify(report, null, 2)}\n`)
  return relative(process.cwd(), path)
}

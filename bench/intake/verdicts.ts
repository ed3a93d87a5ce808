// Checks results against bounds: one row per bound, computed from raw rounds.
// Promises: ratios are taken inside a round (both sides saw the same noise) and then summarised; a row without data is
// left out, not passed.

import type { ContestantName } from '../contestants/contestant.ts'
import type { StoreName } from '../contestants/databases.ts'
import { type Summary, summary } from '../stats.ts'
import { type DrainReport, type FillReport, MEMORY_MARKS } from './fill.ts'
import type { Measurement, Round } from './rounds.ts'

export interface IntakeResults {
  readonly throughput: readonly Round[]
  readonly latency: readonly Round[]
  readonly fill: FillReport | null
  readonly filled: readonly Round[]
  readonly drain: DrainReport | null
}

export interface Verdict {
  readonly what: string
  readonly value: Summary
  readonly bound: string
  readonly pass: boolean
}

function find(round: Round, name: ContestantName): Measurement | undefined {
  return round.measurements.find(({ contestant }) => contestant === name)
}

/** One value per round in which both took part. */
export function perRound(
  rounds: readonly Round[],
  [left, right]: readonly [ContestantName, ContestantName],
  value: (left: Measurement, right: Measurement, round: Round) => number,
): number[] {
  return rounds.flatMap((round) => {
    const [a, b] = [find(round, left), find(round, right)]
    return a && b ? [value(a, b, round)] : []
  })
}

export function rateRatio(left: Measurement, right: Measurement): number {
  return left.rate / right.rate
}

function atLeast(what: string, values: readonly number[], limit: number, note = ''): Verdict[] {
  if (values.length === 0) return []
  const value = summary(values)
  return [{ what, value, bound: `>= ${limit.toFixed(2)}${note}`, pass: value.median >= limit }]
}

function atMost(what: string, values: readonly number[], limit: number): Verdict[] {
  if (values.length === 0) return []
  const value = summary(values)
  return [{ what, value, bound: `<= ${limit.toFixed(2)}`, pass: value.median <= limit }]
}

function memory(fill: FillReport | null): Verdict[] {
  const [small, large] = MEMORY_MARKS.map((mark) => fill?.marks.find(({ events }) => events === mark)?.rssMiB)
  if (!small || !large) return []
  return atMost('resident memory with 500,000 events / with 100,000', [large / small], 1.2)
}

function filledRate({ throughput, filled, fill }: IntakeResults): Verdict[] {
  const empty = summary(perRound(throughput, ['intray', 'bare'], rateRatio)).median
  const full = perRound(filled, ['intray', 'bare'], rateRatio)
  if (!fill || !Number.isFinite(empty)) return []
  const what = `rate with ${fill.events.toLocaleString('en')} events / when empty, both relative to bare`
  return atLeast(
    what,
    full.map((ratio) => ratio / empty),
    0.6,
  )
}

function lag(drain: DrainReport | null): Verdict[] {
  if (!drain) return []
  return atMost('index lag left after the load', [drain.lastLag], 0)
}

function errors({ throughput, latency, filled, fill }: IntakeResults): Verdict {
  const rounds = [...throughput, ...latency, ...filled]
  const measured = rounds.flatMap(({ measurements, disturbed }) => [...measurements, ...disturbed])
  const count = measured.reduce((sum, { errorCount }) => sum + errorCount, fill?.errorCount ?? 0)
  return { what: 'answers that were not a proper 200', value: summary([count]), bound: '0', pass: count === 0 }
}

/** Bounds of each store against bare node:http and against Express. */
const BOUNDS: Record<StoreName, { readonly bare: number; readonly express: number }> = {
  sqlite: { bare: 0.55, express: 4.5 },
  postgres: { bare: 0.4, express: 2.3 },
}

/** The fsyncs of a database server cannot be counted here. */
function addedLatency(store: StoreName, latency: readonly Round[]): Verdict[] {
  if (store !== 'sqlite') return []
  return atMost(
    'added latency at 1 connection (p50 over bare), in fsyncs',
    perRound(latency, ['intray', 'bare'], (b, a, round) => (b.p50Ms - a.p50Ms) / round.fsync.p50Ms),
    3,
  )
}

export function verdicts(store: StoreName, results: IntakeResults): Verdict[] {
  const { throughput, latency, fill, drain } = results
  const { bare, express } = BOUNDS[store]
  return [
    ...atLeast('intray / bare, rate', perRound(throughput, ['intray', 'bare'], rateRatio), bare),
    ...atLeast(`intray / express + ${store}, rate`, perRound(throughput, ['intray', 'express'], rateRatio), express),
    ...addedLatency(store, latency),
    ...memory(fill),
    ...filledRate(results),
    ...lag(drain),
    errors(results),
  ]
}

// Long runs of Intray alone: fills a store over HTTP to a number of events, samples its memory, waits for its index.
// Promises: memory is sampled exactly at the marks, between two parts of the fill; every wait is bounded.

import { setTimeout as pause } from 'node:timers/promises'
import type { Contestant } from '../contestants/contestant.ts'
import type { LoadGenerator } from '../load/generator.ts'
import { residentMiB } from '../proc.ts'

/** Where resident memory is sampled: if it is flat between the two, memory does not grow with the store. */
export const MEMORY_MARKS = [100_000, 500_000] as const

/** A slower store is given up. */
const SLOWEST_RATE = 200
const DRAIN_LIMIT_MS = 300_000
/** Each poll starts a command, which takes half a second of a core from the index: so the intervals grow. */
const SHORTEST_PAUSE_MS = 250
const PAUSE_SHARE = 0.05

export interface FillMark {
  readonly events: number
  readonly rssMiB: number | null
  readonly seconds: number
  readonly rate: number
}

export interface FillReport {
  readonly events: number
  readonly errorCount: number
  readonly errorSample: string | null
  readonly marks: readonly FillMark[]
}

export interface DrainReport {
  /** Lag when first polled after the load, and milliseconds until it was 0; null: that was not seen in time. */
  readonly firstLag: number
  readonly drainedMs: number | null
  readonly lastLag: number
}

/** Runs `./intray <args>` and parses the one JSON object that it prints. */
type RunCommand = (args: readonly string[]) => Promise<Record<string, unknown>>

export async function fillStore(
  load: LoadGenerator,
  intray: Contestant,
  events: number,
  connections: number,
  onProgress: (stored: number) => void,
): Promise<FillReport> {
  const marks: FillMark[] = []
  let stored = 0
  let errorCount = 0
  let errorSample: string | null = null
  for (const mark of [...MEMORY_MARKS.filter((memoryMark) => memoryMark < events), events]) {
    const count = mark - stored
    const { port, token, pids } = intray
    const before = stored
    const report = await load.run({ port, token, connections, count, seconds: count / SLOWEST_RATE + 30 }, (done) =>
      onProgress(before + done),
    )
    stored += report.answers
    errorCount += report.errorCount
    errorSample ??= report.errorSample
    marks.push({ events: stored, rssMiB: residentMiB(pids[0] ?? 0), seconds: report.seconds, rate: report.rate })
    if (stored < mark) {
      throw new Error(
        `the fill stopped at ${stored} of ${events} events: ${JSON.stringify(report.errors)} ${errorSample}`,
      )
    }
  }
  return { events: stored, errorCount, errorSample, marks }
}

/** Polls the index lag until it is 0. */
export async function drainIndex({ cli }: { readonly cli: RunCommand }): Promise<DrainReport> {
  const startedAt = performance.now()
  let firstLag: number | null = null
  for (;;) {
    const { lag } = await cli(['reindex', '--status', '--json'])
    if (typeof lag !== 'number') throw new Error('`./intray reindex --status --json` printed no "lag".')
    const elapsedMs = performance.now() - startedAt
    firstLag ??= lag
    if (lag === 0 || elapsedMs > DRAIN_LIMIT_MS) {
      return { firstLag, lastLag: lag, drainedMs: lag === 0 ? elapsedMs : null }
    }
    await pause(Math.max(SHORTEST_PAUSE_MS, PAUSE_SHARE * elapsedMs))
  }
}

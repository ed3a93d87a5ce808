// One measurement of one side.
//
//   burst      messages/s of a short closed-loop load. Work that a version defers past the answer is not included.
//   sustained  messages / time from the first request until all of them are stored and indexed: a closed-loop load, then
//              the wait for the index. A version that answers early and works later is charged for the same work as one
//              that does all at once; a steady rate would first have to be searched for, which takes minutes a side.
//              Both sides get the same number of messages, so their stores grow alike. Work deferred past the index falls
//              into the next round on the same store; the first round is a warm-up and does not count.
//
// The end of indexing is observed as a client sees it: a list without `index_lag`. The server holds such a request
// until the index is complete, for 2 s at most, so the moment is known to 0.1 s. This file opens no database and reads
// no schema.

import { assertRunning } from '../contestants/contestant.ts'
import type { Intray } from '../contestants/intray.ts'
import { Processor } from '../inbox/client.ts'
import { measure, settle } from '../intake/rounds.ts'
import type { LoadGenerator } from '../load/generator.ts'
import { busySeconds, cpuSecondsOf, machineTicks, peakResidentMiB, resetPeakResident, stealShare } from '../proc.ts'

/** An index that takes longer is given up. */
const INDEX_LIMIT_MS = 600_000
/** A side slower than this does not finish its load. */
const SLOWEST_RATE = 100

export interface Reading {
  readonly rate: number
  readonly messages: number
  /** The divisor of `rate`. */
  readonly seconds: number
  /** Of these, the seconds until the last answer. */
  readonly loadSeconds: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Of all server processes, from the first request until the server is quiet. */
  readonly peakMiB: number | null
  readonly errorCount: number
  readonly errorSample: string | null
  readonly stealShare: number | null
  /** CPU seconds of processes other than the server and the load generator. */
  readonly otherCpuSeconds: number | null
  /** Turns of what ran beside it. */
  readonly turnsBeside?: number
}

export interface Side {
  readonly intray: Intray
  /** Resolves when all sent messages are indexed. */
  readonly indexed: () => Promise<void>
}

export async function createSide(intray: Intray): Promise<Side> {
  const tokenArgs = ['token', 'create', '--account', '7', '--company', '42', '--scope', 'processor', '--json']
  const { token } = await intray.cli(tokenArgs)
  const indexed = async (): Promise<void> => {
    const processor = new Processor(intray.port, String(token))
    const giveUpAt = performance.now() + INDEX_LIMIT_MS
    try {
      for (;;) {
        const { index_lag: lag } = await processor.get('/v1/inbox/events?limit=1')
        if (lag === undefined) return
        if (performance.now() > giveUpAt) throw new Error(`${String(lag)} messages are still not indexed.`)
      }
    } finally {
      processor.close()
    }
  }
  return { intray: { ...intray, finished: indexed }, indexed }
}

export async function measureBurst(
  load: LoadGenerator,
  { intray }: Side,
  connections: number,
  seconds: number,
): Promise<Reading> {
  const pid = intray.child.pid!
  resetPeakResident(pid)
  const { answers, seconds: took, ...rest } = await measure(load, intray, connections, seconds, 0)
  const { rate, p50Ms, p99Ms, errorCount, errorSample, stealShare: stolen, otherCpuSeconds } = rest
  return {
    rate,
    messages: answers,
    seconds: took,
    loadSeconds: took,
    p50Ms,
    p99Ms,
    peakMiB: peakResidentMiB(pid),
    errorCount,
    errorSample,
    stealShare: stolen,
    otherCpuSeconds,
  }
}

export async function measureSustained(
  load: LoadGenerator,
  { intray, indexed }: Side,
  connections: number,
  count: number,
): Promise<Reading> {
  const { port, token, pids, child } = intray
  resetPeakResident(child.pid!)
  const [cpuBefore, ticksBefore] = [cpuSecondsOf(pids), machineTicks()]
  const startedAt = performance.now()
  assertRunning(intray)
  const report = await load.run({ port, token, connections, count, seconds: count / SLOWEST_RATE })
  const loadSeconds = (performance.now() - startedAt) / 1000
  await indexed()
  const seconds = (performance.now() - startedAt) / 1000
  assertRunning(intray)
  const [cpuAfter, ticksAfter] = [cpuSecondsOf(pids), machineTicks()]
  const busy = busySeconds(ticksBefore, ticksAfter)
  const own = cpuBefore === null || cpuAfter === null ? null : cpuAfter - cpuBefore + report.cpuSeconds
  await settle(intray)
  const { answers, p50Ms, p99Ms, errorCount, errorSample } = report
  return {
    rate: answers / seconds,
    messages: answers,
    seconds,
    loadSeconds,
    p50Ms,
    p99Ms,
    peakMiB: peakResidentMiB(child.pid!),
    errorCount,
    errorSample,
    stealShare: stealShare(ticksBefore, ticksAfter),
    otherCpuSeconds: busy === null || own === null ? null : Math.max(0, busy - own),
  }
}

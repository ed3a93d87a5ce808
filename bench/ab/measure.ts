// One measurement of one side.
//
// burst      messages/s of a short closed-loop load. What a version puts off until after the answer is not part of it.
// sustained  messages / time from the first request until all of them are stored and indexed: a closed-loop load, then the wait
//            for the index. A version that answers early and works later and one that does all at once are charged for the same
//            work; a steady rate would first have to be searched for, which takes minutes a side and depends on the search.
//            Both sides get the same number of messages, so their stores grow alike. What a version puts off even past the
//            index is due in the next round on the same store; the first round is for warming up and does not count.
//
// The end of indexing is seen as a client sees it: a list that no longer has `index_lag`. The server holds such a request until
// the index is complete, for 2 s at most, so the moment is known to 0.1 s. Nothing here opens a database or reads a schema.

import { assertRunning } from '../contestants/contestant.ts'
import type { Intray } from '../contestants/intray.ts'
import { Processor } from '../inbox/client.ts'
import { measure, settle } from '../intake/rounds.ts'
import type { LoadGenerator } from '../load/generator.ts'
import { busySeconds, cpuSecondsOf, machineTicks, peakResidentMiB, resetPeakResident, stealShare } from '../proc.ts'

/** An index that takes longer is not worth waiting for. */
const INDEX_LIMIT_MS = 600_000
/** A side slower than this does not get through its load. */
const SLOWEST_RATE = 100

export interface Reading {
  readonly rate: number
  readonly messages: number
  /** What `rate` divides by. */
  readonly seconds: number
  /** Of those, the seconds until the last answer. */
  readonly loadSeconds: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Of all processes of the server, from the first request until it has gone quiet. */
  readonly peakMiB: number | null
  readonly errorCount: number
  readonly errorSample: string | null
  readonly stealShare: number | null
  /** CPU seconds that went to processes other than the server and the load. */
  readonly otherCpuSeconds: number | null
}

export interface Side {
  readonly intray: Intray
  /** Resolves when everything that was sent is indexed. */
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

// Interleaved rounds: every contestant once a round, in rotating order, so that noise hits all of them alike.
// Promises: a measurement starts only when the previous contestant is quiet (Intray indexes after it answers, and that
// must not be charged to the next one); the time this took is kept with the measurement. A measurement that the
// hypervisor disturbed is repeated, whatever it showed, and kept beside the one that counts.

import { setTimeout as interval } from 'node:timers/promises'
import { assertRunning, type Contestant, type ContestantName } from '../contestants/contestant.ts'
import type { LoadGenerator } from '../load/generator.ts'
import type { LoadReport } from '../load/job.ts'
import { type FsyncCost, measureFsync } from '../machine.ts'
import { busySeconds, cpuSecondsOf, isDisturbed, machineTicks, residentMiB, stealShare } from '../proc.ts'

const FSYNCS_PER_ROUND = 100
const QUIET_SAMPLE_MS = 200
const QUIET_CPU_SECONDS = 0.02
const QUIET_LIMIT_MS = 60_000
const IDLE_SAMPLE_MS = 500
const IDLE_CORES = 0.15
/** Of one measurement: the last try counts in any case. In total at most as many tries are discarded as count. */
const MAX_TRIES = 6
const RETRY_PAUSE_MS = 5000

export interface Measurement extends LoadReport {
  readonly contestant: ContestantName
  readonly round: number
  readonly connections: number
  readonly serverCpuSeconds: number | null
  readonly serverRssMiB: number | null
  readonly stealShare: number | null
  /** CPU seconds of processes other than the server and the load generator: noise. */
  readonly otherCpuSeconds: number | null
  /** How long the server worked after the end of the load. */
  readonly settleMs: number
}

export interface Round {
  readonly fsync: FsyncCost
  readonly measurements: readonly Measurement[]
  /** Repeated, and not counted. */
  readonly disturbed: readonly Measurement[]
}

export interface RoundPlan {
  readonly rounds: number
  readonly seconds: number
  readonly warmSeconds: number
  readonly idleWaitSeconds: number
  readonly connections: number
}

/** Waits until the server has done all sent work and its CPU time stands still; returns the wait in ms. */
export async function settle({ pids, finished }: Contestant): Promise<number> {
  const startedAt = performance.now()
  await finished?.()
  let before = cpuSecondsOf(pids)
  for (;;) {
    await interval(QUIET_SAMPLE_MS)
    const now = cpuSecondsOf(pids)
    const elapsedMs = performance.now() - startedAt
    if (before === null || now === null || now - before <= QUIET_CPU_SECONDS) return elapsedMs - QUIET_SAMPLE_MS
    if (elapsedMs > QUIET_LIMIT_MS) return elapsedMs
    before = now
  }
}

/** Waits until no other process uses the machine, or until the limit: the measurement then shows the noise. */
export async function waitForIdle(limitSeconds: number): Promise<void> {
  const giveUpAt = performance.now() + limitSeconds * 1000
  while (performance.now() < giveUpAt) {
    const before = machineTicks()
    await interval(IDLE_SAMPLE_MS)
    const busy = busySeconds(before, machineTicks())
    if (busy === null || busy / (IDLE_SAMPLE_MS / 1000) <= IDLE_CORES) return
  }
}

export async function measure(
  load: LoadGenerator,
  contestant: Contestant,
  connections: number,
  seconds: number,
  round: number,
): Promise<Measurement> {
  const { name, pids, port, token } = contestant
  const cpuBefore = cpuSecondsOf(pids)
  const ticksBefore = machineTicks()
  assertRunning(contestant)
  const report = await load.run({ port, token, connections, seconds, count: null })
  assertRunning(contestant)
  const ticksAfter = machineTicks()
  const cpuAfter = cpuSecondsOf(pids)
  const serverRssMiB = residentMiB(pids[0] ?? 0)
  const serverCpuSeconds = cpuBefore === null || cpuAfter === null ? null : cpuAfter - cpuBefore
  const busy = busySeconds(ticksBefore, ticksAfter)
  return {
    ...report,
    contestant: name,
    round,
    connections,
    serverCpuSeconds,
    serverRssMiB,
    stealShare: stealShare(ticksBefore, ticksAfter),
    otherCpuSeconds:
      busy === null || serverCpuSeconds === null ? null : Math.max(0, busy - serverCpuSeconds - report.cpuSeconds),
    settleMs: await settle(contestant),
  }
}

export async function runRounds(
  load: LoadGenerator,
  contestants: readonly Contestant[],
  plan: RoundPlan,
  folder: string,
  onMeasured: (measurement: Measurement) => void,
): Promise<Round[]> {
  const { connections, seconds, warmSeconds } = plan
  for (const contestant of contestants) await measure(load, contestant, connections, warmSeconds, 0)
  const rounds: Round[] = []
  let retriesLeft = plan.rounds * contestants.length
  for (let round = 1; round <= plan.rounds; round++) {
    await waitForIdle(plan.idleWaitSeconds)
    const fsync = measureFsync(folder, FSYNCS_PER_ROUND)
    const first = (round - 1) % contestants.length
    const measurements: Measurement[] = []
    const disturbed: Measurement[] = []
    for (const contestant of [...contestants.slice(first), ...contestants.slice(0, first)]) {
      for (let tries = 1; ; tries++) {
        const measurement = await measure(load, contestant, connections, seconds, round)
        onMeasured(measurement)
        if (!isDisturbed(measurement) || tries === MAX_TRIES || retriesLeft-- <= 0) {
          measurements.push(measurement)
          break
        }
        disturbed.push(measurement)
        await interval(RETRY_PAUSE_MS)
      }
    }
    rounds.push({ fsync, measurements, disturbed })
  }
  return rounds
}

/** One contestant's measurements, in the order of the rounds. */
export function measurementsOf(rounds: readonly Round[], name: ContestantName): Measurement[] {
  return rounds.flatMap(({ measurements }) => measurements.filter(({ contestant }) => contestant === name))
}

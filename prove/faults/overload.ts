// `prove overload`: more messages than the store takes, and more connections than the processor does. A cycle is a second of
// each step.
//
// Store: every sync of the disk is delayed, so that the store takes at most a fifth of what HTTP carries; then up to 5 times
// as much is offered, whatever is answered. It goes on with what the processor's part has stored: in a database that is still
// small a commit touches fewer pages, and the capacity that all is measured against would be one that does not last.
// Claim: at 5 times the capacity at least 90 % of it is still acknowledged in time, all the rest is 503 with Retry-After and
// really not stored, and all is as before within seconds after it is over.
// Processor: as many connections as send as fast as they can, 64 to 2,048.
// Claim: at least 80 % of the best is kept up, memory stays bounded, what is above the limit is closed at accept.
// Control: the same service with a queue without bounds must be found to miss the goal at 5 times its capacity.

import { spawnSync } from 'node:child_process'
import { connect } from 'node:net'
import { DatabaseSync } from 'node:sqlite'
import { residentMiB } from '../../bench/proc.ts'
import { closedLoop, type Figures, openLoop } from '../pace.ts'
import { plot } from '../plot.ts'
import { type ControlResult, type Proof, type ProofContext, type ProofResult, Unable } from '../proof.ts'
import { Service } from '../service.ts'
import { waitFor } from '../wait.ts'

/** How long a sender waits: what comes later is no good to it. */
const PATIENCE_MS = 5000
/** Of what HTTP carries; the claim asks for at most 20 %. So little that 5 times as much does not overload the processor as well. */
const CAPACITY_SHARE = 0.05
/** What a sync takes longer. */
const DELAY_MS = 200
const SENDERS = 512
const MAX_SENDERS = 4000
const STEPS = [0.5, 0.8, 1, 1.5, 2, 3, 5]
const CONNECTIONS = [64, 128, 256, 512, 1024, 2048]
const CONNECTIONS_LIMIT = 2048
const ABOVE_LIMIT = 200
const MEMORY_LIMIT_MIB = 1024
const RECOVERED_WITHIN_S = 10
const UNBOUNDED = {
  INTRAY_QUEUE_MAX_EVENTS: '1000000',
  INTRAY_QUEUE_MAX_BYTES: '17179869184',
  INTRAY_QUEUE_MAX_WAIT: '1h',
}

export const overload: Proof = {
  name: 'overload',
  about: 'more than the store takes (its syncs delayed), and more connections than the processor does',
  needs: 'strace',
  stores: ['sqlite'],
  defaultCycles: 15,
  async run(context) {
    if (spawnSync('strace', ['--version']).error) throw new Unable('strace is missing: apt-get install strace')
    const databaseUrl = await context.newDatabase()
    const processor = await overloadProcessor(context, databaseUrl)
    const http = Math.max(...processor.steps.map(({ figures }) => figures.goodPerSecond))
    const store = await overloadStore(context, databaseUrl, http)
    const stored = storedIn(databaseUrl.replace(/^sqlite:/, ''))
    const control = await withoutBounds(context, databaseUrl, store)
    return resultOf(context, { http, store, processor, stored, control })
  },
}

interface Step {
  readonly at: number
  readonly figures: Figures
}

interface StoreRun {
  readonly batchEvents: number
  readonly capacity: number
  readonly steps: readonly Step[]
  readonly recoveredS: number | null
  readonly all: readonly Figures[]
}

/** Syncs take longer; nothing else is slowed, since only they are traced. */
function delayedBy(ms: number): readonly string[] {
  const inject = `inject=fdatasync,fsync:delay_exit=${Math.round(ms)}ms`
  return ['strace', '-D', '-f', '--seccomp-bpf', '-qq', '-o', '/dev/null', '-e', 'trace=fdatasync,fsync', '-e', inject]
}

async function overloadStore(context: ProofContext, databaseUrl: string, http: number): Promise<StoreRun> {
  const seconds = context.cycles
  // Eight appends of a batch share a commit: the size of a batch decides the capacity.
  const batchEvents = Math.max(1, Math.round((CAPACITY_SHARE * http * DELAY_MS) / 1000 / 8))
  const { service, token } = await slowService(context, databaseUrl, batchEvents, {})
  const pace = { port: service.port, token, seconds, patienceMs: PATIENCE_MS }
  // Twice as long: everything is measured against it.
  const saturated = await closedLoop({ ...pace, seconds: 2 * seconds }, SENDERS, 100)
  const capacity = saturated.goodPerSecond
  context.progress(
    `HTTP carries ${http.toFixed(0)}/s; syncs delayed by ${DELAY_MS} ms, batches of ${batchEvents}: ${capacity.toFixed(0)}/s`,
  )
  const all = [saturated]
  const steps: Step[] = []
  for (const at of STEPS) {
    const figures = await openLoop(pace, at * capacity, MAX_SENDERS)
    all.push(figures)
    steps.push({ at, figures })
    context.progress(`${at} × ${lineOf(figures)}`)
  }
  const calm = steps[0]!.figures
  let recoveredS: number | null = null
  for (let second = 1; second <= RECOVERED_WITHIN_S && recoveredS === null; second += 1) {
    const figures = await openLoop({ ...pace, seconds: 1 }, 0.5 * capacity, MAX_SENDERS)
    all.push(figures)
    if (figures.good === figures.offered && figures.p99Ms <= 2 * calm.p99Ms) recoveredS = second
  }
  await service.stop()
  return { batchEvents, capacity, steps, recoveredS, all }
}

async function slowService(
  context: ProofContext,
  databaseUrl: string,
  batchEvents: number,
  env: Readonly<Record<string, string>>,
) {
  const service = new Service(context, {
    databaseUrl,
    prefix: delayedBy(DELAY_MS),
    env: { INTRAY_BATCH_MAX_EVENTS: String(batchEvents), ...env },
  })
  const token = await service.mint('cf')
  await service.start()
  return { service, token }
}

/** Counted in the database itself, after the service has ended. */
function storedIn(path: string): number {
  const db = new DatabaseSync(path)
  try {
    return db.prepare('SELECT count(DISTINCT source_ref) AS stored FROM events').get()!.stored as number
  } finally {
    db.close()
  }
}

async function withoutBounds(
  context: ProofContext,
  databaseUrl: string,
  { batchEvents, capacity }: StoreRun,
): Promise<ControlResult> {
  const { service, token } = await slowService(context, databaseUrl, batchEvents, UNBOUNDED)
  const pace = { port: service.port, token, seconds: context.cycles, patienceMs: PATIENCE_MS }
  const figures = await openLoop(pace, 5 * capacity, MAX_SENDERS)
  await service.kill()
  return {
    about: 'the same with a queue without bounds',
    failed: figures.goodPerSecond < 0.9 * capacity,
    detail: `at 5 × ${share(figures.goodPerSecond, capacity)} of the capacity in time, p99 ${figures.p99Ms.toFixed(0)} ms`,
  }
}

interface ProcessorRun {
  readonly steps: readonly Step[]
  readonly mostMiB: number
  readonly closedAtAccept: number
}

async function overloadProcessor(context: ProofContext, databaseUrl: string): Promise<ProcessorRun> {
  const env = { INTRAY_MAX_CONNECTIONS: String(CONNECTIONS_LIMIT) }
  const service = new Service(context, { databaseUrl, env })
  const token = await service.mint('cf')
  await service.start()
  let mostMiB = 0
  const watch = setInterval(() => (mostMiB = Math.max(mostMiB, residentMiB(service.pid) ?? 0)), 200)
  context.onCleanup(() => clearInterval(watch))
  const pace = { port: service.port, token, seconds: context.cycles, patienceMs: PATIENCE_MS }
  const steps: Step[] = []
  for (const at of CONNECTIONS) {
    const figures = await closedLoop(pace, at)
    steps.push({ at, figures })
    context.progress(`${at} connections, ${lineOf(figures)}`)
  }
  const closedAtAccept = await openTooMany(service.port)
  clearInterval(watch)
  await service.stop()
  return { steps, mostMiB, closedAtAccept }
}

/** Opens the limit and some more, and counts those that were closed without a word. */
async function openTooMany(port: number): Promise<number> {
  let closed = 0
  let opened = 0
  const sockets = Array.from({ length: CONNECTIONS_LIMIT + ABOVE_LIMIT }, () =>
    connect({ host: '127.0.0.1', port })
      .on('connect', () => (opened += 1))
      .on('error', () => {})
      .on('close', () => (closed += 1)),
  )
  await waitFor('those above the limit to be closed', () => closed >= ABOVE_LIMIT && opened >= CONNECTIONS_LIMIT)
  const counted = closed
  for (const socket of sockets) socket.destroy()
  return counted
}

interface Runs {
  readonly http: number
  readonly store: StoreRun
  readonly processor: ProcessorRun
  readonly stored: number
  readonly control: ControlResult
}

function resultOf(context: ProofContext, { http, store, processor, stored, control }: Runs): ProofResult {
  const worst = store.steps.at(-1)!.figures
  const rates = processor.steps.map(({ figures }) => figures.goodPerSecond)
  const best = Math.max(...rates)
  // Before the best there is no overload yet.
  const least = Math.min(...rates.slice(rates.indexOf(best)))
  const all = [...store.all, ...processor.steps.map(({ figures }) => figures)]
  const sum = (of: (figures: Figures) => number) => all.reduce((total, one) => total + of(one), 0)
  const acknowledged = sum((one) => one.acknowledged)
  const unknown = sum((one) => one.unanswered)
  const other = sum((one) => one.other)
  const timed: [isBroken: boolean, what: string][] = [
    [
      store.capacity > 0.2 * http,
      `the capacity was ${share(store.capacity, http)} of what HTTP carries, not at most 20 %`,
    ],
    [
      worst.goodPerSecond < 0.9 * store.capacity,
      `at 5 × only ${share(worst.goodPerSecond, store.capacity)} of the capacity`,
    ],
    [store.recoveredS === null, `not back to normal ${RECOVERED_WITHIN_S} s after the overload`],
    [least < 0.8 * best, `with more connections only ${share(least, best)} of the best`],
  ]
  return {
    counts: {
      ...{ sent: sum((one) => one.sent), acknowledged, unknown, refused: sum((one) => one.refused), resent: 0 },
      faults: worst.refused,
      lost: Math.max(0, acknowledged - stored),
      // What was refused with "stored: no" must not be there.
      resurrected: Math.max(0, stored - acknowledged - unknown),
      ...{ twice: 0, altered: 0, misordered: 0, misnumbered: 0 },
    },
    notes: [
      `Store: HTTP carries ${http.toFixed(0)}/s; every sync delayed by ${DELAY_MS} ms, batches of ${store.batchEvents}: capacity ${store.capacity.toFixed(0)}/s, ${share(store.capacity, http)}. At 5 ×: ${share(worst.goodPerSecond, store.capacity)} of the capacity within ${PATIENCE_MS / 1000} s, ${worst.refused} answered 503 with Retry-After, ${worst.offered - worst.sent} not sent because no connection was free.`,
      `Back to normal ${store.recoveredS ?? `not within ${RECOVERED_WITHIN_S}`} s after.`,
      `Processor: best ${best.toFixed(0)}/s, least ${share(least, best)} of it; at most ${processor.mostMiB.toFixed(0)} MiB; ${processor.closedAtAccept} of ${ABOVE_LIMIT} connections above the limit of ${CONNECTIONS_LIMIT} closed at accept.`,
    ],
    broken: [
      ...timed.filter(([isBroken]) => isBroken && context.isTimed).map(([, what]) => what),
      ...(other > 0 ? [`${other} answers were neither 200 nor 503 with Retry-After`] : []),
      ...(processor.mostMiB > MEMORY_LIMIT_MIB ? [`memory grew to ${processor.mostMiB.toFixed(0)} MiB`] : []),
      ...(processor.closedAtAccept === ABOVE_LIMIT ? [] : [`${processor.closedAtAccept} closed at accept`]),
    ],
    controls: [control],
    appendix: [...tableOf('offered × capacity', store.steps), '', ...tableOf('connections', processor.steps)].join(
      '\n',
    ),
    files: { 'overload.svg': drawn(store, processor) },
  }
}

function tableOf(first: string, steps: readonly Step[]): string[] {
  return [
    `| ${first} | offered/s | good/s | 503 | no answer | p50 | p99 |`,
    '|---|---|---|---|---|---|---|',
    ...steps.map(({ at, figures }) => {
      const { offeredPerSecond, goodPerSecond, refused, unanswered, p50Ms, p99Ms } = figures
      const rates = [offeredPerSecond, goodPerSecond].map((rate) => rate.toFixed(0))
      return `| ${[at, ...rates, refused, unanswered, `${p50Ms.toFixed(1)} ms`, `${p99Ms.toFixed(1)} ms`].join(' | ')} |`
    }),
  ]
}

function drawn(store: StoreRun, processor: ProcessorRun): string {
  const points = (steps: readonly Step[], y: (figures: Figures) => number) =>
    steps.map(({ at, figures }) => [at, y(figures)] as const)
  const xLabel = 'offered, times the capacity'
  const goal = STEPS.map((at) => [at, 0.9 * store.capacity * Math.min(1, at)] as const)
  return plot('Overload: offered load against goodput and p99', [
    {
      ...{ title: 'Store overload: goodput', xLabel, yLabel: 'messages a second' },
      series: [
        { name: 'acknowledged in time', points: points(store.steps, (one) => one.goodPerSecond) },
        { name: '90 % of the capacity', points: goal, isGuide: true },
      ],
    },
    {
      ...{ title: 'Store overload: p99', xLabel, yLabel: 'ms, of what was acknowledged' },
      series: [{ name: 'p99', points: points(store.steps, (one) => one.p99Ms) }],
    },
    {
      ...{ title: 'Processor overload', xLabel: 'connections', yLabel: 'messages a second' },
      series: [{ name: 'acknowledged in time', points: points(processor.steps, (one) => one.goodPerSecond) }],
    },
  ])
}

function lineOf({ offeredPerSecond, goodPerSecond, refused, p99Ms }: Figures): string {
  return `${offeredPerSecond.toFixed(0)}/s offered: ${goodPerSecond.toFixed(0)}/s good, ${refused} refused, p99 ${p99Ms.toFixed(0)} ms`
}

function share(part: number, whole: number): string {
  return `${((100 * part) / whole).toFixed(0)} %`
}

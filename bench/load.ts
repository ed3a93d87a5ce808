// The load generator: a separate process that answers each job from its parent (IPC) with one report.
// Promises: closed loop (or, with a rate, no faster than that), no pipelining, every connection open before the clock
// starts; a rate counts only answers inside the window; an answer other than a valid 200 counts as an error with a
// sample. A job ends in bounded time.

import { Connection, type Listener } from './load/connection.ts'
import { Histogram } from './load/histogram.ts'
import type { LoadJob, LoadMessage, LoadReport } from './load/job.ts'

const PROGRESS_EVERY_MS = 1000
const DRAIN_LIMIT_MS = 20_000
const MAX_ERRORS = 20_000
const SAMPLE_CHARS = 600

class Session implements Listener {
  readonly #job: LoadJob
  readonly #latencies = new Histogram()
  readonly #perSecond: number[] = []
  readonly #errors = new Map<string, number>()
  readonly #ended = Promise.withResolvers<void>()
  #connections: Connection[] = []
  #errorSample: string | null = null
  #errorCount = 0
  #startedAt = 0
  #deadline = 0
  #issued = 0
  #inWindow = 0
  #late = 0
  #open = 0

  constructor(job: LoadJob) {
    this.#job = job
  }

  async run(onProgress: (done: number) => void): Promise<LoadReport> {
    const { port, token, connections } = this.#job
    this.#connections = Array.from({ length: connections }, () => new Connection(port, token, this))
    await Promise.all(this.#connections.map((connection) => connection.open()))
    const cpuBefore = process.cpuUsage()
    this.#open = connections
    this.#startedAt = performance.now()
    this.#deadline = this.#startedAt + this.#job.seconds * 1000
    const progress = setInterval(() => onProgress(this.#inWindow), PROGRESS_EVERY_MS)
    const giveUp = setTimeout(() => this.#giveUp(), this.#job.seconds * 1000 + DRAIN_LIMIT_MS)
    for (const connection of this.#connections) connection.start(performance.now())
    await this.#ended.promise
    clearInterval(progress)
    clearTimeout(giveUp)
    return this.#report(process.cpuUsage(cpuBefore))
  }

  answered(latencyMs: number, now: number): void {
    if (now > this.#deadline) {
      this.#late++
      return
    }
    this.#latencies.record(latencyMs)
    this.#inWindow++
    const second = Math.floor((now - this.#startedAt) / 1000)
    while (this.#perSecond.length <= second) this.#perSecond.push(0)
    this.#perSecond[second]!++
  }

  failed(kind: string, detail: string): void {
    this.#errorCount++
    this.#errors.set(kind, (this.#errors.get(kind) ?? 0) + 1)
    this.#errorSample ??= detail.slice(0, SAMPLE_CHARS)
  }

  mayStart(now: number): boolean {
    if (now >= this.#deadline || this.#errorCount >= MAX_ERRORS) return false
    if (this.#job.count !== null && this.#issued - this.#errorCount >= this.#job.count) return false
    this.#issued++
    return true
  }

  /** For the request that was just allowed to start. */
  dueInMs(now: number): number {
    const { rate } = this.#job
    return rate === undefined ? 0 : this.#startedAt + ((this.#issued - 1) / rate) * 1000 - now
  }

  finished(): void {
    if (--this.#open === 0) this.#ended.resolve()
  }

  #giveUp(): void {
    this.failed('no answer in time', `${this.#open} connections were still waiting`)
    for (const connection of this.#connections) connection.finish()
  }

  #report(cpu: NodeJS.CpuUsage): LoadReport {
    const elapsed = (performance.now() - this.#startedAt) / 1000
    const seconds = this.#job.count === null ? this.#job.seconds : Math.min(elapsed, this.#job.seconds)
    return {
      answers: this.#inWindow,
      late: this.#late,
      seconds,
      rate: this.#inWindow / seconds,
      perSecond: this.#perSecond,
      p50Ms: this.#latencies.percentileMs(0.5),
      p99Ms: this.#latencies.percentileMs(0.99),
      maxMs: this.#latencies.maxMs,
      errorCount: this.#errorCount,
      errors: Object.fromEntries(this.#errors),
      errorSample: this.#errorSample,
      cpuSeconds: (cpu.user + cpu.system) / 1e6,
    }
  }
}

function tell(message: LoadMessage): void {
  process.send?.(message)
}

process.on('disconnect', () => process.exit(0))
process.on('message', (job: LoadJob) => {
  new Session(job)
    .run((done) => tell({ type: 'progress', done }))
    .then(
      (report) => tell({ type: 'report', report }),
      (error: Error) => tell({ type: 'failed', message: error.message }),
    )
})

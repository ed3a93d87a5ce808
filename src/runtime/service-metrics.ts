// The figures of the service, by name. docs/operating/monitoring.md lists them, and a test holds the list against this file.

import { monitorEventLoopDelay } from 'node:perf_hooks'
import { cached, Metrics } from './metrics.ts'
import type { Service } from './service.ts'

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const EVENTS = [1, 2, 4, 8, 16, 32, 64, 128, 256]
const TOKEN_REFUSALS = new Set([
  'missing_token',
  'invalid_token',
  'token_disabled',
  'token_expired',
  'forbidden_scope',
  'rate_limited',
  'too_many_failures',
])
/** What the store is asked for is at most this old. */
const STORE_FIGURES_MS = 2000

/** What became of a request. */
export interface Answered {
  /** The path as the table has it; null where no route has the address. */
  readonly route: string | null
  /** Null if the client left before an answer. */
  readonly status: number | null
  readonly seconds: number
  /** Stored, duplicate, conflict: a message that was taken. */
  readonly outcome: string | null
  readonly error: string | null
}

export interface ServiceFigures {
  readonly version: string
  readonly driver: string
  /** Ages in seconds; null where there is none to tell. */
  readonly store: () => Promise<{
    readonly indexLag: number
    readonly leases: number
    readonly oldestPendingSeconds: number
    readonly watermarkAgeSeconds: number | null
  }>
  readonly queue: () => { readonly events: number; readonly bytes: number; readonly oldestSeconds: number }
  /** What is under way on the inbox side. */
  readonly inbox: () => { readonly requests: number; readonly claims: number; readonly streams: number }
  readonly receivingBytes: () => number
  readonly isReady: () => boolean
}

export class ServiceMetrics implements Service {
  readonly #metrics = new Metrics()
  readonly #delay = monitorEventLoopDelay({ resolution: 20 })
  readonly #requests = this.#metrics.counter('intray_http_requests_total', 'Requests by route and status.', [
    'route',
    'status',
  ])
  readonly #seconds = this.#metrics.histogram('intray_http_request_seconds', 'Time from headers to answer.', SECONDS)
  readonly #messages = this.#metrics.counter('intray_messages_total', 'Messages taken, by what they were.', ['outcome'])
  readonly #refusals = this.#metrics.counter('intray_errors_total', 'Requests refused, by error code.', ['error'])
  readonly #tokens = this.#metrics.counter('intray_token_refusals_total', 'Requests refused for their token.', [
    'reason',
  ])
  readonly #shed = this.#metrics.counter('intray_shed_total', 'Requests answered 503 overloaded, by route.', ['route'])
  readonly #batches = this.#metrics.histogram('intray_append_events', 'Messages in one append.', EVENTS)
  readonly #appends = this.#metrics.histogram('intray_append_seconds', 'Time of one append until on disk.', SECONDS)
  readonly #failures = this.#metrics.counter('intray_append_failures_total', 'Appends whose outcome is unknown.')

  constructor(figures: ServiceFigures) {
    const metrics = this.#metrics
    const { version, driver } = figures
    metrics.gauge('intray_build_info', 'Always 1.', () => 1, { version, node: process.version, store: driver })
    metrics.gauge('intray_ready', '1 while messages are taken.', () => (figures.isReady() ? 1 : 0))
    const store = cached(STORE_FIGURES_MS, figures.store)
    metrics.gauge('intray_index_lag', 'Journal rows that are not indexed yet.', async () => (await store()).indexLag)
    metrics.gauge(
      'intray_watermark_age_seconds',
      'How long the oldest committed message has not been seen.',
      async () => {
        return (await store()).watermarkAgeSeconds
      },
    )
    metrics.gauge('intray_oldest_pending_seconds', 'Age of the oldest event not handed out.', async () => {
      return (await store()).oldestPendingSeconds
    })
    metrics.gauge('intray_leases', 'Leases that have not expired, at most 10000.', async () => (await store()).leases)
    metrics.gauge('intray_inbox_requests', 'Requests of the inbox under way.', () => figures.inbox().requests)
    metrics.gauge('intray_inbox_claims', 'Claims under way or waiting.', () => figures.inbox().claims)
    metrics.gauge('intray_streams', 'Streams that are open.', () => figures.inbox().streams)
    metrics.gauge('intray_receiving_bytes', 'Bytes held of large bodies still arriving.', figures.receivingBytes)
    metrics.gauge('intray_queue_events', 'Messages taken that are not on disk yet.', () => figures.queue().events)
    metrics.gauge('intray_queue_bytes', 'Bytes taken that are not on disk yet.', () => figures.queue().bytes)
    metrics.gauge('intray_queue_oldest_seconds', 'How long the oldest message has been waiting.', () => {
      return figures.queue().oldestSeconds
    })
    metrics.gauge('process_resident_memory_bytes', 'Resident memory.', () => process.memoryUsage.rss())
    metrics.gauge('process_cpu_seconds_total', 'CPU time, user and system.', () => {
      const { user, system } = process.cpuUsage()
      return (user + system) / 1e6
    })
    metrics.gauge('intray_event_loop_delay_seconds', 'Longest delay of the event loop since the last look.', () => {
      const seconds = this.#delay.max / 1e9
      this.#delay.reset()
      return seconds
    })
  }

  start(): void {
    this.#delay.enable()
  }

  answered({ route, status, seconds, outcome, error }: Answered): void {
    this.#requests.add(route ?? 'none', status === null ? 'none' : String(status))
    this.#seconds.observe(seconds)
    if (outcome !== null) this.#messages.add(outcome)
    if (error !== null) this.#refusals.add(error)
    if (error !== null && TOKEN_REFUSALS.has(error)) this.#tokens.add(error)
    if (error === 'overloaded') this.#shed.add(route ?? 'none')
  }

  appended(events: number, seconds: number, failure: unknown): void {
    this.#batches.observe(events)
    this.#appends.observe(seconds)
    if (failure !== null) this.#failures.add()
  }

  render(): Promise<string> {
    return this.#metrics.render()
  }

  async stop(): Promise<void> {
    this.#delay.disable()
  }
}

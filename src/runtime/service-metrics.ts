// The metrics of the service, by name. A test compares the Grafana dashboard with this file.

import { monitorEventLoopDelay } from 'node:perf_hooks'
import { cached, type Counter, Metrics } from './metrics.ts'
import type { Service } from './service.ts'

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const EVENTS = [1, 2, 4, 8, 16, 32, 64, 128, 256]
const OUTCOMES = ['stored', 'duplicate', 'conflict']
const TOKEN_REFUSALS = [
  'missing_token',
  'invalid_token',
  'token_disabled',
  'token_expired',
  'unknown_hook',
  'hook_disabled',
  'hook_expired',
  'invalid_signature',
  'forbidden_scope',
  'rate_limited',
  'too_many_failures',
]
/** What requests to endpoints come to; a status of the third, fourth or fifth hundred is a failure. */
const PUSH_RESULTS = [
  ...['delivered', '1xx', '3xx', '4xx', '5xx'],
  ...['forbidden_address', 'unresolved', 'refused', 'timeout', 'reset', 'tls', 'invalid_answer'],
]
/** The route of a request to an unknown path. */
const NO_ROUTE = 'none'
/** Store metrics are cached for this long. */
const STORE_METRICS_MS = 2000

/** A finished request. */
export interface Answered {
  /** The path of the route table; null for an unknown path. */
  readonly route: string | null
  /** Null if the client left before an answer. */
  readonly status: number | null
  readonly seconds: number
  /** For an accepted message: stored, duplicate or conflict. */
  readonly outcome: string | null
  readonly error: string | null
}

export interface MetricSources {
  readonly version: string
  readonly driver: string
  /** The paths of the route table, and those of them that may be shed. */
  readonly routes: readonly string[]
  readonly sheddableRoutes: readonly string[]
  /** The codes of the error catalogue. */
  readonly errors: readonly string[]
  /** Ages in seconds; null where the store has no watermark or does not know its disk, and before the first backup. */
  readonly store: () => Promise<{
    readonly indexLag: number
    readonly searchLag: number
    readonly leases: number
    readonly oldestPendingSeconds: number
    readonly watermarkAgeSeconds: number | null
    readonly backupAgeSeconds: number | null
    readonly erasures: number
    readonly erasuresPending: number
    readonly databaseBytes: number
    readonly disk: { readonly bytes: number; readonly freeBytes: number } | null
    readonly unreadable: number
  }>
  readonly queue: () => { readonly events: number; readonly bytes: number; readonly oldestSeconds: number }
  /** Inbox requests in progress. */
  readonly inbox: () => { readonly requests: number; readonly claims: number; readonly streams: number }
  readonly receivingBytes: () => number
  /** Refusals that were not kept. */
  readonly droppedRefusals: () => number
  /** Messages that are too old and not processed; how far the oldest message is past its age; the end of the last walk. */
  readonly retention: () => {
    readonly held: number
    readonly overdueSeconds: number
    readonly lastRunSeconds: number | null
  }
  /** Endpoints by what is the matter with them. */
  readonly push: () => {
    readonly active: number
    readonly disabled: number
    readonly circuitsOpen: number
    readonly unreadable: number
  }
  /** In ms; null without TLS. */
  readonly certificateExpiresAt: () => number | null
  readonly isReady: () => boolean
}

export class ServiceMetrics implements Service {
  readonly #metrics = new Metrics()
  readonly #delay = monitorEventLoopDelay({ resolution: 20 })
  readonly #requests: Counter
  readonly #seconds = this.#metrics.histogram('intray_http_request_seconds', 'Time from headers to answer.', SECONDS)
  readonly #messages = this.#metrics.counter(
    'intray_messages_total',
    'Accepted messages by outcome.',
    ['outcome'],
    OUTCOMES.map((outcome) => [outcome]),
  )
  readonly #refusals: Counter
  readonly #tokens = this.#metrics.counter(
    'intray_token_refusals_total',
    'Requests refused for their token or hook.',
    ['reason'],
    TOKEN_REFUSALS.map((reason) => [reason]),
  )
  readonly #shed: Counter
  readonly #batches = this.#metrics.histogram('intray_append_events', 'Messages in one append.', EVENTS)
  readonly #appends = this.#metrics.histogram(
    'intray_append_seconds',
    'Time of one append until it is on disk.',
    SECONDS,
  )
  readonly #failures = this.#metrics.counter('intray_append_failures_total', 'Appends whose outcome is unknown.')

  readonly #deleted = this.#metrics.counter(
    'intray_retention_deleted_total',
    'Rows that retention deleted, by kind.',
    ['kind'],
    [['events'], ['refusals'], ['history']],
  )

  readonly #pushes = this.#metrics.counter(
    'intray_push_attempts_total',
    'Requests to endpoints, by result.',
    ['result'],
    PUSH_RESULTS.map((result) => [result]),
  )
  readonly #pushSeconds = this.#metrics.histogram(
    'intray_push_seconds',
    'Time of a request to an endpoint until its status.',
    SECONDS,
  )

  constructor(sources: MetricSources) {
    const metrics = this.#metrics
    const { version, driver, routes, sheddableRoutes, errors } = sources
    this.#requests = metrics.counter(
      'intray_http_requests_total',
      'Requests by route and status.',
      ['route', 'status'],
      [...routes.map((route) => [route, '200'] as const), [NO_ROUTE, '404']],
    )
    this.#refusals = metrics.counter(
      'intray_errors_total',
      'Requests refused, by error code.',
      ['error'],
      errors.map((error) => [error]),
    )
    this.#shed = metrics.counter(
      'intray_shed_total',
      'Requests answered 503 overloaded, by route.',
      ['route'],
      sheddableRoutes.map((route) => [route]),
    )
    metrics.gauge('intray_build_info', 'Always 1.', () => 1, { version, node: process.version, store: driver })
    metrics.gauge('intray_ready', '1 while messages are accepted.', () => (sources.isReady() ? 1 : 0))
    const store = cached(STORE_METRICS_MS, sources.store)
    metrics.gauge('intray_index_lag', 'Journal rows that are not indexed yet.', async () => (await store()).indexLag)
    metrics.gauge('intray_search_lag', 'Events that search does not find yet.', async () => (await store()).searchLag)
    metrics.gauge(
      'intray_watermark_age_seconds',
      'Age of the oldest committed message that readers cannot see yet.',
      async () => {
        return (await store()).watermarkAgeSeconds
      },
    )
    metrics.gauge('intray_backup_age_seconds', 'Age of the last backup that ./intray backup wrote.', async () => {
      return (await store()).backupAgeSeconds
    })
    metrics.gauge('intray_unreadable_events', 'Ids whose rows damaged pages hide from the indexer.', async () => {
      return (await store()).unreadable
    })
    metrics.gauge('intray_oldest_pending_seconds', 'Age of the oldest event not handed out.', async () => {
      return (await store()).oldestPendingSeconds
    })
    metrics.gauge('intray_leases', 'Leases that have not expired, at most 10000.', async () => (await store()).leases)
    metrics.gauge('intray_database_bytes', 'Size of the database with its index.', async () => {
      return (await store()).databaseBytes
    })
    metrics.gauge('intray_disk_size_bytes', 'Size of the disk with the database.', async () => {
      return (await store()).disk?.bytes ?? null
    })
    metrics.gauge('intray_disk_free_bytes', 'Bytes of that disk that this user may still write.', async () => {
      return (await store()).disk?.freeBytes ?? null
    })
    metrics.keptCounter('intray_erasures_total', 'Events and revisions that were erased.', async () => {
      return (await store()).erasures
    })
    metrics.gauge('intray_erasures_pending', 'Erasures with copies in the index or the files.', async () => {
      return (await store()).erasuresPending
    })
    metrics.gauge('intray_inbox_requests', 'Inbox requests in progress.', () => sources.inbox().requests)
    metrics.gauge('intray_inbox_claims', 'Claims in progress or waiting.', () => sources.inbox().claims)
    metrics.gauge('intray_streams', 'Open streams.', () => sources.inbox().streams)
    metrics.gauge(
      'intray_receiving_bytes',
      'Bytes held of large request bodies until they are stored or refused.',
      sources.receivingBytes,
    )
    metrics.gauge('intray_queue_events', 'Accepted messages that wait for their commit.', () => sources.queue().events)
    metrics.gauge(
      'intray_queue_bytes',
      'Bytes of accepted messages that wait for their commit.',
      () => sources.queue().bytes,
    )
    metrics.gauge('intray_queue_oldest_seconds', 'Age of the oldest message that waits for its commit.', () => {
      return sources.queue().oldestSeconds
    })
    metrics.keptCounter('intray_refusals_dropped_total', 'Refusals that were not kept.', sources.droppedRefusals)
    metrics.gauge(
      'intray_retention_held',
      'Messages that are too old and stay, because a subscription has not processed them.',
      () => sources.retention().held,
    )
    metrics.gauge(
      'intray_retention_overdue_seconds',
      'How far past its age the oldest message is that retention is deleting.',
      () => sources.retention().overdueSeconds,
    )
    metrics.gauge('intray_retention_last_run_seconds', 'Time since retention last ended on this node.', () => {
      return sources.retention().lastRunSeconds
    })
    metrics.gauge('intray_endpoints_active', 'Endpoints that are pushed to.', () => sources.push().active)
    metrics.gauge('intray_endpoints_disabled', 'Endpoints that answered 410 and were disabled.', () => {
      return sources.push().disabled
    })
    metrics.gauge('intray_endpoints_circuit_open', 'Endpoints whose events wait, because they fail.', () => {
      return sources.push().circuitsOpen
    })
    metrics.gauge('intray_endpoints_unreadable', 'Endpoints that the key of secrets in use does not open.', () => {
      return sources.push().unreadable
    })
    metrics.gauge(
      'intray_tls_certificate_expires_timestamp_seconds',
      'When the certificate in use expires, as a Unix time.',
      () => {
        const expiresAt = sources.certificateExpiresAt()
        return expiresAt === null ? null : expiresAt / 1000
      },
    )
    metrics.gauge('process_resident_memory_bytes', 'Resident memory.', () => process.memoryUsage.rss())
    metrics.keptCounter('process_cpu_seconds_total', 'CPU time, user and system.', () => {
      const { user, system } = process.cpuUsage()
      return (user + system) / 1e6
    })
    metrics.gauge('intray_event_loop_delay_seconds', 'Longest delay of the event loop since the last scrape.', () => {
      const seconds = this.#delay.max / 1e9
      this.#delay.reset()
      return seconds
    })
  }

  start(): void {
    this.#delay.enable()
  }

  answered({ route, status, seconds, outcome, error }: Answered): void {
    this.#requests.add(route ?? NO_ROUTE, status === null ? 'none' : String(status))
    this.#seconds.observe(seconds)
    // A stream has an outcome too: why it ended.
    if (outcome !== null && OUTCOMES.includes(outcome)) this.#messages.add(outcome)
    if (error !== null) this.#refusals.add(error)
    if (error !== null && TOKEN_REFUSALS.includes(error)) this.#tokens.add(error)
    if (error === 'overloaded') this.#shed.add(route ?? NO_ROUTE)
  }

  appended(events: number, seconds: number, failure: unknown): void {
    this.#batches.observe(events)
    this.#appends.observe(seconds)
    if (failure !== null) this.#failures.add()
  }

  pushed({ status, failure, ms }: { status: number | null; failure: string | null; ms: number }): void {
    this.#pushes.add(failure === null ? 'delivered' : status === null ? failure : `${Math.floor(status / 100)}xx`)
    this.#pushSeconds.observe(ms / 1000)
  }

  deleted(kind: string, rows: number): void {
    this.#deleted.add(kind, '', rows)
  }

  render(): Promise<string> {
    return this.#metrics.render()
  }

  async stop(): Promise<void> {
    this.#delay.disable()
  }
}

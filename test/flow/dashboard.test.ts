// docs/operating/grafana/intray.json against a real Prometheus, which scrapes a server on each database: after some of every kind of
// traffic, every expression of every panel has data.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { stringify } from 'yaml'
import { hasProgram } from '../../prove/debian.ts'
import { NO_RETENTION } from '../../src/model/retention.ts'
import { openBackupSource } from '../../src/store/open.ts'
import { startTestApp, type TestApp } from '../support/app.ts'
import { makeCertificate, newPairFiles, noOpenssl } from '../support/certificates.ts'
import { TestClock } from '../support/clock.ts'
import { type Driver, drivers } from '../support/drivers.ts'
import { EventStream } from '../support/event-stream.ts'
import { idOf } from '../support/intake.ts'
import { cleanEnvironment, ROOT } from '../support/process.ts'
import { startReceiver } from '../support/receiver.ts'
import { tempFolder } from '../support/temp.ts'
import { until } from '../support/until.ts'

const skip = hasProgram('prometheus') ? noOpenssl : 'prometheus is not installed (Debian: prometheus)'
/** Also the time that a scrape may take. */
const SCRAPE_EVERY = '2s'
/** Long enough that many scrapes may be late on a busy machine. */
const RATE_INTERVAL = '30s'

interface Dashboard {
  readonly panels: readonly { readonly title: string; readonly targets: readonly { readonly expr: string }[] }[]
}
const dashboard = JSON.parse(readFileSync(join(ROOT, 'docs/operating/grafana/intray.json'), 'utf8')) as Dashboard
const expressions = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr))

/** What one database does not know. */
const ABSENT: Readonly<Record<string, readonly string[]>> = {
  sqlite: ['intray_watermark_age_seconds'],
  postgres: ['intray_disk_free_bytes', 'intray_disk_size_bytes'],
}
const OF_TLS = 'intray_tls_certificate_expires_timestamp_seconds'

/** Above 0 after the traffic: what the panel shows is what happened. The others show trouble, or what is over in a moment. */
const MOVED = [
  'intray_ready',
  'intray_build_info',
  'intray_messages_total',
  'intray_http_requests_total',
  'intray_http_request_seconds_bucket',
  'intray_errors_total',
  'intray_token_refusals_total',
  'intray_append_events_bucket',
  'intray_append_seconds_bucket',
  'intray_push_seconds_bucket',
  'intray_oldest_pending_seconds',
  'intray_leases',
  'intray_streams',
  'process_cpu_seconds_total',
  'process_resident_memory_bytes',
  'intray_event_loop_delay_seconds',
  'intray_backup_age_seconds',
  'intray_database_bytes',
  'intray_erasures_total',
  'intray_retention_deleted_total',
  OF_TLS,
]

const metricOf = (expr: string): string => /\b(?:intray|process)_\w+/.exec(expr)![0]

class Prometheus {
  readonly #url: string

  private constructor(url: string) {
    this.#url = url
  }

  static async start(t: TestContext, targets: readonly string[]): Promise<Prometheus> {
    const folder = tempFolder('prometheus')
    const file = join(folder, 'prometheus.yaml')
    const scrape = { scrape_interval: SCRAPE_EVERY, scrape_timeout: SCRAPE_EVERY, static_configs: [{ targets }] }
    writeFileSync(file, stringify({ scrape_configs: [{ job_name: 'intray', ...scrape }] }))
    const options = [
      `--config.file=${file}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      '--web.listen-address=127.0.0.1:0',
      '--log.format=json',
    ]
    const child = spawn('prometheus', options, { env: cleanEnvironment({}), stdio: ['ignore', 'ignore', 'pipe'] })
    const exited = once(child, 'close')
    t.after(async () => {
      child.kill('SIGKILL')
      await exited
    })
    let said = ''
    child.stderr.on('data', (chunk: Buffer) => (said += chunk))
    const port = await until('Prometheus listens', () => {
      if (child.exitCode !== null) throw new Error(`Prometheus ended: ${said}`)
      return /"address":"127\.0\.0\.1:([1-9]\d*)"/.exec(said)?.[1]
    })
    const prometheus = new Prometheus(`http://127.0.0.1:${port}`)
    await until('Prometheus is ready', async () => (await fetch(`${prometheus.#url}/-/ready`)).ok)
    return prometheus
  }

  /** The highest values that the expression has had, of each of its series. */
  async highest(expr: string): Promise<number[]> {
    const body = new URLSearchParams({ query: `max_over_time((${expr})[10m:5s])` })
    const answer = await fetch(`${this.#url}/api/v1/query`, { method: 'POST', body })
    const text = await answer.text()
    assert.equal(answer.status, 200, `${expr}: ${text}`)
    const { data } = JSON.parse(text) as { data: { result: { value: [number, string] }[] } }
    return data.result.map(({ value }) => Number(value[1]))
  }
}

interface Target {
  readonly driver: Driver
  readonly hasTls: boolean
  readonly app: TestApp
  readonly clock: TestClock
  readonly address: string
}

async function startTarget(t: TestContext, driver: Driver, hasTls = false): Promise<Target> {
  const clock = new TestClock(Date.now())
  const { cert, key } = newPairFiles(makeCertificate())
  const tls = hasTls ? { tlsCert: cert, tlsKey: key } : {}
  const settings = {
    metrics: '127.0.0.1:0',
    retentionEvery: '1s',
    refusalsMaxAge: '1h',
    pushAllow: 'loopback',
    ...tls,
  } as const
  const app = await startTestApp(t, driver, { clock, settings })
  const address = new URL(String(app.log.find(({ msg }) => msg === 'listening')?.metrics)).host
  return { driver, hasTls, app, clock, address }
}

/** Some of everything that is counted. */
async function makeTraffic(t: TestContext, { app, clock }: Target): Promise<void> {
  const processor = await app.createToken({ scope: 'processor' })
  const admin = await app.createToken({ scope: 'admin' })
  const command = (path: string, body: object) => {
    const headers = { Authorization: `Bearer ${processor}`, 'Content-Type': 'application/json' }
    return app.send({ method: 'POST', path, headers, body: JSON.stringify(body) })
  }
  const stream = await EventStream.open(app.port, processor)
  t.after(() => stream.close())
  const receiver = await startReceiver(t)
  assert.equal((await command('/v1/inbox/subscriptions', { name: 'pushed' })).status, 200)
  assert.equal((await command('/v1/inbox/subscriptions/pushed/endpoint', { url: receiver.url })).status, 200)
  for (const body of ['{"source_ref":"a"}', '{"source_ref":"a"}', '{"source_ref":"a","x":1}']) {
    assert.equal((await app.post(body)).status, 200)
  }
  await stream.until(({ events }) => events.length > 0)
  await until('the message is pushed', () => receiver.received.length > 0)
  assert.equal((await app.post('not json')).status, 400)
  assert.equal((await app.send({ path: '/api/ping', headers: { Authorization: 'Bearer nobody' } })).status, 401)
  // Two days later: too old are the refusal by its setting, and the messages by their tenant's rule.
  clock.advance(2 * 86_400_000)
  const rule = { ...NO_RETENTION, events: 1, unprocessed: 'purge' } as const
  await app.store.retention.setRule({ ...rule, tenant: { accountId: 7, companyId: 42 } })
  const erased = idOf(await app.post({ source_ref: 'to be erased' }))
  // More than are claimed: some stay pending.
  for (let n = 0; n < 9; n++) await app.post({ n })
  await app.indexed()
  const erasure = { method: 'DELETE', headers: { Authorization: `Bearer ${admin}` } }
  assert.equal((await app.send({ ...erasure, path: `/v1/inbox/events/${erased}` })).status, 200)
  const leased: { id: number; lease_id: string }[] = []
  // Retention runs beside it, so one claim may find fewer.
  await until('two events are claimed', async () => {
    const { events } = (await command('/v1/inbox/claims', { limit: 2, lease_s: 3600 })).json as {
      events: typeof leased
    }
    return leased.push(...events) >= 2
  })
  const items = leased.slice(1).map(({ id, lease_id }) => ({ id, lease_id }))
  assert.equal((await command('/v1/inbox/claims/ack', { events: items })).status, 200)
  clock.advance(60_000)
  const backup = await openBackupSource(app.databaseUrl)
  await backup.note(clock.now() - 60_000)
  await backup.close()
}

test('every expression of every panel has data, and those of what happened are above 0', { skip }, async (t) => {
  const busy = await Promise.all(drivers.map((driver) => startTarget(t, driver)))
  const secured = await startTarget(t, drivers[0]!, true)
  const targets = [...busy, secured]
  const prometheus = await Prometheus.start(
    t,
    targets.map(({ address }) => address),
  )
  const scrapedTwice = async () => (await prometheus.highest('sum_over_time(up[10m]) >= 2')).length === targets.length
  await until('each server has been scraped twice', scrapedTwice)
  for (const target of busy) await makeTraffic(t, target)

  const queryOf = (expr: string, { address }: Target) =>
    expr.replaceAll('$instance', address).replaceAll('$__rate_interval', RATE_INTERVAL)
  const hasData = async (expr: string, target: Target) => {
    const values = await prometheus.highest(queryOf(expr, target))
    if (!MOVED.includes(metricOf(expr))) return values.some((value) => Number.isFinite(value))
    return values.some((value) => Number.isFinite(value) && value > 0)
  }
  const isAbsent = (expr: string, { driver, hasTls }: Target) =>
    !hasTls && [OF_TLS, ...ABSENT[driver.name]!].includes(metricOf(expr))
  const asked = [
    ...busy.flatMap((target) => expressions.map((expr) => ({ expr, target }))),
    ...expressions.filter((expr) => metricOf(expr) === OF_TLS).map((expr) => ({ expr, target: secured })),
  ]
  assert.ok(asked.length > 80)
  let missing = asked.filter(({ expr, target }) => !isAbsent(expr, target))
  // One after the other: on a busy machine the answers to all at once take the time that the scrapes need.
  const nothingMisses = async () => {
    const stillMissing: typeof missing = []
    for (const one of missing) if (!(await hasData(one.expr, one.target))) stillMissing.push(one)
    missing = stillMissing
    return missing.length === 0
  }
  await until('every panel has data', nothingMisses).catch(() => {})
  assert.deepEqual(
    missing.map(({ expr, target }) => `${target.driver.name}: ${expr}`),
    [],
  )
  for (const { expr, target } of asked.filter((one) => isAbsent(one.expr, one.target)))
    assert.ok(!(await hasData(expr, target)), `control: ${target.driver.name} has no ${expr}`)
})

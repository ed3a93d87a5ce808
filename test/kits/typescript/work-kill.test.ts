// work() in two processes that are killed again and again: every event is processed, conversations stay in order, and nothing
// is processed twice but what a killed worker had begun.

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startTestApp, type TestApp } from '../../support/app.ts'
import { isStopped } from '../../support/children.ts'
import { drivers } from '../../support/drivers.ts'
import { readerOf } from '../../support/inbox.ts'
import { tempFolder } from '../../support/temp.ts'
import { until, within } from '../../support/until.ts'

const WORKER = fileURLToPath(new URL('./worker-main.ts', import.meta.url))
/** At the begin. */
const EVENTS = 120
const CHANNELS = 6
const KILLS = 4

interface Line {
  readonly what: 'start' | 'end' | 'lost' | 'killed'
  readonly id: number
  readonly worker: string
}

class Workers {
  readonly #t: TestContext
  readonly #app: TestApp
  readonly #token: string
  readonly #file = join(tempFolder('work'), 'log')
  readonly #running = new Map<string, ChildProcess>()
  #starts = 0

  constructor(t: TestContext, app: TestApp, token: string) {
    this.#t = t
    this.#app = app
    this.#token = token
    writeFileSync(this.#file, '')
  }

  start(): void {
    const name = `w${++this.#starts}`
    const args = [WORKER, this.#app.url, this.#token, this.#file, name]
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] })
    this.#t.after(() => child.kill('SIGKILL'))
    this.#running.set(name, child)
  }

  /** The oldest that has begun events and not finished them: looked at while it stands still, so that it is killed in their middle. */
  async killOne(feed: () => Promise<void>): Promise<void> {
    const name = await until('a worker is at work', async () => {
      await feed()
      for (const [one, { pid }] of this.#running) {
        if (this.#begun(one) === 0) continue
        process.kill(pid!, 'SIGSTOP')
        await until('it stands still', () => isStopped(pid!))
        if (this.#begun(one) > 0) return one
        process.kill(pid!, 'SIGCONT')
      }
      return null
    })
    const child = this.#running.get(name)!
    this.#running.delete(name)
    const closed = once(child, 'close')
    child.kill('SIGKILL')
    await within('the killed worker to be gone', closed)
    appendFileSync(this.#file, `killed 0 ${name}\n`)
  }

  async stopAll(): Promise<void> {
    for (const child of this.#running.values()) {
      const closed = once(child, 'close')
      child.kill('SIGTERM')
      assert.deepEqual(await within('a worker to stop', closed), [0, null])
    }
  }

  lines(): Line[] {
    const text = readFileSync(this.#file, 'utf8')
    return text
      .split('\n')
      .slice(0, -1)
      .map((line) => {
        const [what, id, worker] = line.split(' ')
        return { what: what as Line['what'], id: Number(id), worker: worker! }
      })
  }

  #begun(name: string): number {
    const own = this.lines().filter(({ worker }) => worker === name)
    return own.filter(({ what }) => what === 'start').length - own.filter(({ what }) => what === 'end').length
  }
}

test('two workers, killed 4 times: every event once and in order but for what a kill interrupted', async (t) => {
  const app = await startTestApp(t, drivers[0]!, { settings: { maxAttempts: '100' } })
  const channels = new Map<number, number>()
  const feed = async () => {
    const n = channels.size + 1
    const channel = n % (CHANNELS + 1)
    const { json } = await app.post({ source_ref: `m${n}`, ...(channel > 0 && { channel_ref: `c${channel}` }) })
    channels.set(json!.id as number, channel)
  }
  while (channels.size < EVENTS) await feed()
  const workers = new Workers(t, app, await app.createToken({ scope: 'processor' }))
  workers.start()
  workers.start()
  for (let kill = 0; kill < KILLS; kill++) {
    const before = workers.lines().length
    // With more events: a worker may be through with all before the next kill.
    await until('work goes on', async () => {
      await feed()
      return workers.lines().length >= before + 8
    })
    await workers.killOne(feed)
    workers.start()
  }
  const reader = await readerOf(app)
  await until('every event is done', async () => {
    const done = await reader.all('/v1/inbox/events?state=done&limit=100', 'events')
    return done.length === channels.size
  })
  await workers.stopAll()

  const lines = workers.lines()
  const interrupted = lines.filter((line, at) => line.what === 'start' && isInterrupted(lines, line, at))
  const starts = lines.filter(({ what }) => what === 'start').length
  t.diagnostic(`${KILLS} kills interrupted ${interrupted.length} events; ${starts} starts for ${channels.size} events`)
  assert.ok(interrupted.length > 0, 'the kills fell on events under way')
  assert.deepEqual(doubles(lines), [], 'no event was begun again while its worker lived and had its lease')
  assert.deepEqual(outOfOrder(lines, channels), [])
  // The checks find what they look for.
  const [first] = lines
  assert.equal(doubles([first!, { ...first!, worker: 'other' }]).length, 1)
  const ofOne = [...channels].filter(([, channel]) => channel === 1).map(([id]) => id)
  assert.equal(outOfOrder([{ what: 'start', id: ofOne[1]!, worker: 'w' }], channels).length, 1)
})

/** A start that its worker did not live to end. */
function isInterrupted(lines: readonly Line[], { id, worker }: Line, at: number): boolean {
  const own = lines.slice(at + 1).filter((line) => line.worker === worker)
  return !own.some((line) => line.what === 'end' && line.id === id) && own.some(({ what }) => what === 'killed')
}

/** Second starts of an event whose earlier workers were neither killed nor lost their lease. */
function doubles(lines: readonly Line[]): Line[] {
  const gone = (worker: string, id: number) =>
    lines.some((line) => line.worker === worker && (line.what === 'killed' || (line.what === 'lost' && line.id === id)))
  return lines.filter(
    (line, at) =>
      line.what === 'start' &&
      lines.slice(0, at).some((one) => one.what === 'start' && one.id === line.id && !gone(one.worker, one.id)),
  )
}

/** Starts of events before one that comes earlier in their conversation had ended. */
function outOfOrder(lines: readonly Line[], channels: ReadonlyMap<number, number>): Line[] {
  const ended = new Set<number>()
  return lines.filter((line) => {
    if (line.what === 'end') ended.add(line.id)
    const channel = channels.get(line.id)
    if (line.what !== 'start' || !channel) return false
    return [...channels].some(([id, other]) => other === channel && id < line.id && !ended.has(id))
  })
}

// One run of the fault test of a client: kills senders and the service under load, then lets the rest be sent and
// compares what send() accepted with what is stored.

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Gate } from '../../support/gate.ts'
import { createToken, readJournal, withStore } from '../../support/journal.ts'
import { seededRandom } from '../../support/load.ts'
import { type ServerProcess, startServer } from '../../support/process.ts'
import { tempFolder } from '../../support/temp.ts'
import { until, within } from '../../support/until.ts'

const SENDER = fileURLToPath(new URL('./sender-main.ts', import.meta.url))
const SEED = 20261119

export interface Found {
  readonly accepted: number
  readonly lost: string[]
  readonly twice: string[]
  /** Events of a channel that stand before an earlier one of the same sender. */
  readonly outOfOrder: string[]
}

export class KillRun {
  readonly databaseUrl = `sqlite:${join(tempFolder('kit-kill'), 'intray.db')}`
  readonly outbox: string
  readonly #t: TestContext
  readonly #command: readonly string[]
  readonly #random = seededRandom(SEED)
  readonly #accepted: string[] = []
  #server: ServerProcess | null = null
  #sender: { readonly child: ChildProcess; count(): number } | null = null
  /** Senders keep one address, and each start of the service takes the port that it gets. */
  #gate: Gate | null = null
  #token = ''
  #starts = 0

  /** `command` starts a sender that takes the arguments of sender-main.ts and does the same. */
  constructor(t: TestContext, outbox: string, command: readonly string[] = [process.execPath, SENDER]) {
    this.#t = t
    this.outbox = outbox
    this.#command = command
  }

  async startService(): Promise<void> {
    this.#token ||= await withStore(this.databaseUrl, (store) => createToken(store))
    const env = { INTRAY_DATABASE_URL: this.databaseUrl, INTRAY_CONSOLE: 'off' }
    this.#server = await startServer(this.#t, env)
    if (this.#gate === null) {
      const gate = await Gate.open(this.#server.port)
      this.#t.after(() => gate.close())
      this.#gate = gate
    }
    this.#gate.target = this.#server.port
    this.#gate.set('open')
  }

  async killService(): Promise<void> {
    const server = this.#server!
    server.child.kill('SIGKILL')
    await within('the killed service to be gone', server.exited)
    // Another process may have its port next.
    this.#gate!.set('down')
    assert.equal(server.child.signalCode, 'SIGKILL')
  }

  startSender(): void {
    const child = this.#spawn('send')
    let count = 0
    let rest = ''
    child.stdout!.on('data', (chunk: Buffer) => {
      const lines = (rest + chunk).split('\n')
      rest = lines.pop()!
      this.#accepted.push(...lines)
      count += lines.length
    })
    this.#sender = { child, count: () => count }
  }

  /** Resolves when the sender has accepted some more messages. */
  async more(atLeast: number): Promise<void> {
    const { child, count } = this.#sender!
    const wanted = atLeast + this.#random(20)
    const goal = count() + wanted
    // Some more, so that it is sending when this returns.
    child.stdin!.write('.'.repeat(wanted + 10))
    await until('the sender accepts more', () => {
      assert.equal(child.exitCode, null, 'the sender ended by itself')
      return count() >= goal
    })
  }

  async killSender(): Promise<void> {
    const { child } = this.#sender!
    const closed = once(child, 'close')
    child.kill('SIGKILL')
    await within('the killed sender to be gone', closed)
    assert.equal(child.signalCode, 'SIGKILL')
  }

  /** Sends what is left, in a process that then ends by itself. */
  async drain(): Promise<string> {
    const child = this.#spawn('drain')
    let said = ''
    child.stdout!.on('data', (chunk: Buffer) => (said += chunk))
    const [code] = await within('the outbox to be empty', once(child, 'close'))
    assert.equal(code, 0)
    return said
  }

  async compare(): Promise<Found> {
    const stored = (await readJournal(this.databaseUrl)).filter(({ event }) => event.kind === 'event')
    const refs = stored.map(({ event }) => event.sourceRef!)
    const known = new Set(refs)
    const seen = new Set<string>()
    const newest = new Map<string, number>()
    const outOfOrder: string[] = []
    for (const { event } of stored) {
      if (event.channelRef === null) continue
      const [sender, number] = event.sourceRef!.split(':') as [string, string]
      const lane = `${sender} ${event.channelRef}`
      if (Number(number) < (newest.get(lane) ?? 0)) outOfOrder.push(event.sourceRef!)
      newest.set(lane, Number(number))
    }
    return {
      accepted: this.#accepted.length,
      lost: this.#accepted.map((line) => line.split(' ')[0]!).filter((ref) => !known.has(ref)),
      twice: refs.filter((ref) => seen.size === seen.add(ref).size),
      outOfOrder,
    }
  }

  #spawn(task: string): ChildProcess {
    const start = ++this.#starts
    // The clock of each start is an hour ahead of the last: the claims of the killed one have ended.
    const args = [this.#gate!.url, this.#token, this.outbox, `s${start}`, String(start), task]
    const [program, ...first] = this.#command
    const child = spawn(program!, [...first, ...args], { stdio: ['pipe', 'pipe', 'inherit'] })
    child.stdin.on('error', () => {})
    this.#t.after(() => child.kill('SIGKILL'))
    return child
  }
}

/** Two kills of the sender and one of the service each round, and one more of the sender. */
export async function killManyTimes(run: KillRun, rounds: number): Promise<void> {
  await run.startService()
  run.startSender()
  for (let round = 0; round < rounds; round++) {
    await run.more(20)
    await run.killSender()
    run.startSender()
    await run.more(20)
    await run.killService()
    await run.more(10)
    await run.killSender()
    run.startSender()
    await run.more(5)
    await run.startService()
  }
  await run.more(10)
  await run.killSender()
}

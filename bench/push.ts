// `bench push`: how many events a second the service delivers to a local receiver that answers at once, and what intake has left beside.
// Promises: every event that is counted arrived at the receiver; bounded in time; children and temporary folders are removed in any case.

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { STORES, type StoreName, startDatabases, storeNamed } from './contestants/databases.ts'
import { type Intray, startIntray } from './contestants/intray.ts'
import { Processor, putEvents } from './inbox/client.ts'
import { drainIndex } from './intake/fill.ts'
import { LoadGenerator } from './load/generator.ts'
import { machineFacts } from './machine.ts'
import { wholeIn } from './option-values.ts'
import { cpuSecondsOf, machineTicks, stealShare } from './proc.ts'
import { Scope } from './scope.ts'
import { table } from './table.ts'

const HELP = `Usage: npm run bench -- push [options]

  --store <name>        ${STORES.join(', ')} (sqlite)
  --endpoints <n>       each gets every event (4)
  --events <n>          events that wait when the endpoints are set (20000)
  --conversations <n>   that they are of (2000)
  --concurrency <n>     of each endpoint (16)
  --seconds <n>         of each measurement of intake (10)
  --rounds <n>          of intake, without and with pushes in turn (3)
  --profile <folder>    for a CPU profile of the service
  --folder <path>       where the temporary folder is made; must be a real disk (/tmp)
  --help`

const WANTED_RATE = 3000
const LIMIT_MS = 300_000
const LOOK_EVERY_MS = 50
const SECRETS_KEY = Buffer.alloc(32, 1).toString('base64')

interface Options {
  readonly store: StoreName
  readonly endpoints: number
  readonly events: number
  readonly conversations: number
  readonly concurrency: number
  readonly seconds: number
  readonly rounds: number
  readonly profile: string | null
  readonly folder: string
}

export async function runPush(argv: readonly string[]): Promise<number> {
  const options = parse(argv)
  if (!options) {
    console.log(HELP)
    return 0
  }
  const scope = new Scope(options.folder)
  try {
    const { cpu, cores, node } = machineFacts()
    console.log(`${cpu}, ${cores} cores, Node ${node}, ${options.store}\n`)
    console.log(await measure(scope, options))
    return 0
  } finally {
    await scope.close()
  }
}

function parse(argv: readonly string[]): Options | null {
  const text = { type: 'string' } as const
  const numbers = { endpoints: text, events: text, conversations: text, concurrency: text, seconds: text, rounds: text }
  const options = {
    store: text,
    profile: text,
    folder: text,
    ...numbers,
    help: { type: 'boolean', short: 'h' },
  } as const
  const { values } = parseArgs({ args: [...argv], options })
  if (values.help) return null
  return {
    store: storeNamed(values.store),
    endpoints: wholeIn('endpoints', values.endpoints, 4, 1, 50),
    events: wholeIn('events', values.events, 20_000, 1, 10_000_000),
    conversations: wholeIn('conversations', values.conversations, 2000, 1, 1_000_000),
    concurrency: wholeIn('concurrency', values.concurrency, 16, 1, 64),
    seconds: wholeIn('seconds', values.seconds, 10, 1, 3600),
    rounds: wholeIn('rounds', values.rounds, 3, 0, 100),
    profile: values.profile ?? null,
    folder: values.folder ?? '/tmp',
  }
}

async function measure(scope: Scope, options: Options): Promise<string> {
  const databases = await startDatabases(options.store, scope)
  const receiver = await Receiver.start(scope)
  const settings = { INTRAY_PUSH_ALLOW: 'loopback', INTRAY_SECRETS_KEY: SECRETS_KEY }
  const intray = await startIntray(scope, databases, { settings, profileFolder: options.profile })
  const processor = new Processor(intray.port, await processorToken(intray))
  await putEvents(
    intray.databaseUrl,
    options.events,
    (n) => `c${n % options.conversations}`,
    () => {},
  )
  await drainIndex(intray)

  const delivered = await deliverAll(options, intray, processor, receiver)
  const beside = await besideIntake(scope, options, intray, processor, receiver)
  processor.close()
  await scope.stop(intray.child)
  await databases.close()
  return [delivered, ...beside].join('\n\n')
}

async function processorToken({ cli }: Intray): Promise<string> {
  const made = await cli(['token', 'create', '--account', '7', '--company', '42', '--scope', 'processor', '--json'])
  return String(made.token)
}

async function deliverAll(
  options: Options,
  { pids }: Intray,
  processor: Processor,
  receiver: Receiver,
): Promise<string> {
  const names = Array.from({ length: options.endpoints }, (_, n) => `push${n}`)
  for (const name of names) await processor.post('/v1/inbox/subscriptions', { name, from: 'beginning' })
  const wanted = options.events * options.endpoints
  const [cpuBefore, ticksBefore] = [cpuSecondsOf(pids), machineTicks()]
  const startedAt = performance.now()
  for (const name of names) await setEndpoint(options, processor, receiver, name)
  let first: { at: number; count: number } | null = null
  for (;;) {
    const count = await receiver.count()
    const now = performance.now()
    if (count > 0) first ??= { at: now, count }
    if (count >= wanted) break
    if (now - startedAt > LIMIT_MS) throw new Error(`only ${count} of ${wanted} events arrived in time`)
    await pause(LOOK_EVERY_MS)
  }
  const seconds = (performance.now() - (first?.at ?? startedAt)) / 1000
  const rate = (wanted - (first?.count ?? 0)) / seconds
  const cpu = ((cpuSecondsOf(pids) ?? Number.NaN) - (cpuBefore ?? Number.NaN)) / seconds
  const stolen = (stealShare(ticksBefore, machineTicks()) ?? 0) * 100
  const columns = ['events delivered', 'events/s', 'wanted', 'cores of the service', 'steal'].map((title) => ({
    title,
  }))
  const row = [wanted, Math.round(rate), WANTED_RATE, cpu.toFixed(2), `${stolen.toFixed(1)} %`].map(String)
  return `${options.endpoints} endpoints, ${options.conversations} conversations\n${table(columns, [row])}`
}

const setEndpoint = ({ concurrency }: Options, processor: Processor, { port }: Receiver, name: string) =>
  processor.post(`/v1/inbox/subscriptions/${name}/endpoint`, { url: `http://127.0.0.1:${port}/${name}`, concurrency })

/** The same load with the endpoints paused and active, in turn. */
async function besideIntake(
  scope: Scope,
  { rounds, seconds, endpoints }: Options,
  { port, token }: Intray,
  processor: Processor,
  receiver: Receiver,
): Promise<string[]> {
  if (rounds === 0) return []
  const load = new LoadGenerator(scope)
  const rows: string[][] = []
  for (let round = 0; round < rounds; round++) {
    for (const verb of round % 2 === 0 ? ['pause', 'resume'] : ['resume', 'pause']) {
      for (let n = 0; n < endpoints; n++) await processor.post(`/v1/inbox/subscriptions/push${n}/endpoint/${verb}`, {})
      const before = await receiver.count()
      const report = await load.run({ port, token, connections: 64, seconds, count: null })
      const pushed = ((await receiver.count()) - before) / report.seconds
      const row = [
        verb === 'pause' ? 'paused' : 'active',
        report.rate,
        report.p50Ms,
        report.p99Ms,
        pushed,
        report.errorCount,
      ]
      rows.push(row.map((cell) => (typeof cell === 'number' ? cell.toFixed(cell < 100 ? 1 : 0) : cell)))
    }
  }
  const titles = ['endpoints', 'intake/s', 'p50 ms', 'p99 ms', 'pushed/s', 'errors']
  return [
    table(
      titles.map((title) => ({ title })),
      rows,
    ),
  ]
}

class Receiver {
  readonly #child: ChildProcess
  readonly port: number

  constructor(child: ChildProcess, port: number) {
    this.#child = child
    this.port = port
  }

  static async start(scope: Scope): Promise<Receiver> {
    const program = fileURLToPath(new URL('./push/receiver.ts', import.meta.url))
    const child = scope.own(fork(program, [], { execArgv: [], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] }))
    const [{ port }] = (await once(child, 'message')) as [{ port: number }]
    return new Receiver(child, port)
  }

  async count(): Promise<number> {
    const answer = once(this.#child, 'message') as Promise<[{ count: number }]>
    this.#child.send({})
    return (await answer)[0].count
  }
}

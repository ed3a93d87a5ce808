// `bench inbox`: the cost of reading and processing stored events, and whether it grows with the store.
// Promises: bounded in time; children and temporary folders are removed in any case.

import { parseArgs } from 'node:util'
import { type Databases, STORES, type StoreName, startDatabases, storeNamed } from './contestants/databases.ts'
import { startFilledIntray } from './contestants/filled-intray.ts'
import type { Intray } from './contestants/intray.ts'
import { Processor } from './inbox/client.ts'
import { machineFacts } from './machine.ts'
import { Scope } from './scope.ts'
import { median } from './stats.ts'
import { table } from './table.ts'
import { UsageError } from './usage-error.ts'

const HELP = `Usage: npm run bench -- inbox [options]

  --store <name>      ${STORES.join(', ')} (sqlite)
  --small <n>         events of the small database (20000)
  --large <n>         events of the large one (1000000)
  --run <n>           events of the one conversation (100000)
  --claims <n>        events claimed and acknowledged in each measurement (20000)
  --skip <name>       leave out rates or growth
  --folder <path>     where the temporary folder is made; must be a real disk (/tmp)
  --help`

const READS = 60
const BATCH = 100

interface Options {
  readonly store: StoreName
  readonly small: number
  readonly large: number
  readonly run: number
  readonly claims: number
  readonly skip: string
  readonly folder: string
}

interface Claimed {
  readonly id: number
  readonly lease_id: string
}

export async function runInbox(argv: readonly string[]): Promise<number> {
  const options = parse(argv)
  if (!options) {
    console.log(HELP)
    return 0
  }
  const scope = new Scope(options.folder)
  try {
    const databases = await startDatabases(options.store, scope)
    const { cpu, cores, node } = machineFacts()
    console.log(`${cpu}, ${cores} cores, Node ${node}, ${options.store}\n`)
    if (options.skip !== 'rates') console.log(`${await measureRates(scope, databases, options)}\n`)
    if (options.skip !== 'growth') console.log(await measureGrowth(scope, databases, options))
    await databases.close()
    return 0
  } finally {
    await scope.close()
  }
}

function parse(argv: readonly string[]): Options | null {
  const text = { type: 'string' } as const
  const options = { store: text, small: text, large: text, run: text, claims: text, skip: text, folder: text } as const
  const { values } = parseArgs({ args: [...argv], options: { ...options, help: { type: 'boolean', short: 'h' } } })
  if (values.help) return null
  const count = (name: string, value: string | undefined, fallback: number): number => {
    const number = Number(value ?? fallback)
    if (!Number.isInteger(number) || number < 1000)
      throw new UsageError(`--${name} must be a whole number from 1000 on.`)
    return number
  }
  return {
    store: storeNamed(values.store),
    small: count('small', values.small, 20_000),
    large: count('large', values.large, 1_000_000),
    run: count('run', values.run, 100_000),
    claims: count('claims', values.claims, 20_000),
    skip: skipped(values.skip ?? ''),
    folder: values.folder ?? '/tmp',
  }
}

function skipped(name: string): string {
  if (!['', 'rates', 'growth'].includes(name)) throw new UsageError('--skip knows rates and growth.')
  return name
}

interface Filled {
  readonly intray: Intray
  readonly processor: Processor
}

async function startProcessor(
  scope: Scope,
  databases: Databases,
  count: number,
  channelOf: (n: number) => string,
): Promise<Filled> {
  const intray = await startFilledIntray(scope, databases, count, channelOf)
  const { token } = await intray.cli(tokenArgs)
  return { intray, processor: new Processor(intray.port, String(token)) }
}

const tokenArgs = ['token', 'create', '--account', '7', '--company', '42', '--scope', 'processor', '--json']

async function stop(scope: Scope, { intray, processor }: Filled): Promise<void> {
  processor.close()
  await scope.stop(intray.child)
}

async function measureRates(scope: Scope, databases: Databases, options: Options): Promise<string> {
  // More events than are claimed: a claim that finds none waits a second.
  const many = await startProcessor(scope, databases, 2 * options.claims + 10 * BATCH, (n) => `page ${n % 2000}`)
  const byOne = await drain(many.processor, options.claims, true, 1)
  const byFour = await drain(many.processor, options.claims, true, 4)
  await stop(scope, many)
  const one = await startProcessor(scope, databases, options.run, () => 'the one page')
  const ordered = await drain(one.processor, Math.min(options.claims, options.run / 2), true, 1)
  const unordered = await drain(one.processor, Math.min(options.claims, options.run / 2), false, 4)
  await stop(scope, one)
  const titles = ['claim + ack, batches of 100', 'events/s', 'must be', '']
  const rows = [
    rateRow('2,000 conversations, one processor', byOne, 5000),
    rateRow('the same, four processors', byFour, 5000),
    rateRow(`one conversation of ${options.run.toLocaleString('en')}, ordered, one processor`, ordered, 2000),
    rateRow('that conversation, unordered, four processors', unordered, 4000),
  ]
  return table(
    titles.map((title) => ({ title })),
    rows,
  )
}

function rateRow(what: string, rate: number, bound: number): string[] {
  return [what, Math.round(rate).toLocaleString('en'), `>= ${bound}`, rate >= bound ? 'pass' : 'FAIL']
}

/** Claims and acknowledges this many events with this many concurrent processors; returns events a second. */
async function drain(processor: Processor, count: number, ordered: boolean, processors: number): Promise<number> {
  let left = count
  const startedAt = performance.now()
  const work = async (): Promise<void> => {
    for (let inVain = 0; left > 0; ) {
      const { events } = await processor.post('/v1/inbox/claims', {
        limit: BATCH,
        lease_s: 60,
        wait_s: 1,
        ordered,
      })
      const claimed = events as Claimed[]
      inVain = claimed.length === 0 ? inVain + 1 : 0
      // Other processors may hold all events for a second on a stalled machine, but not for ten.
      if (inVain === 10 && left > 0) throw new Error(`nothing to claim with ${left} to go`)
      if (claimed.length === 0) continue
      left -= claimed.length
      await processor.post('/v1/inbox/claims/ack', { events: claimed.map(({ id, lease_id }) => ({ id, lease_id })) })
    }
  }
  await Promise.all(Array.from({ length: processors }, work))
  return (count - left) / ((performance.now() - startedAt) / 1000)
}

/**
 * Conversations have the same length in both databases, so that a page of one is the same page; even the small one has
 * more than are claimed.
 */
const EVENTS_PER_CONVERSATION = 25

/**
 * Sends the same requests to a small and a large database: their cost must not grow with the size. The requests
 * alternate, since the speed of the machine varies over minutes.
 */
async function measureGrowth(scope: Scope, databases: Databases, options: Options): Promise<string> {
  const both: Filled[] = []
  for (const size of [options.small, options.large]) {
    const conversations = Math.ceil(size / EVENTS_PER_CONVERSATION)
    both.push(await startProcessor(scope, databases, size, (n) => `page ${n % conversations}`))
  }
  const [small, large] = (await measureReads(both.map(({ processor }) => processor))) as [Medians, Medians]
  for (const filled of both) await stop(scope, filled)
  const sizes = [options.small, options.large].map((size) => `ms with ${size.toLocaleString('en')}`)
  const rows = Object.keys(small).map((what) => {
    const ratio = large[what]! / small[what]!
    return [
      what,
      small[what]!.toFixed(2),
      large[what]!.toFixed(2),
      ratio.toFixed(2),
      '<= 2',
      ratio <= 2 ? 'pass' : 'FAIL',
    ]
  })
  const titles = ['median of a call', ...sizes, 'ratio', 'must be', '']
  return table(
    titles.map((title) => ({ title })),
    rows,
  )
}

/** Medians in ms, by request. */
type Medians = Record<string, number>

async function measureReads(processors: readonly Processor[]): Promise<Medians[]> {
  const all = await Promise.all(processors.map(requestsTo))
  const medians: Medians[] = processors.map(() => ({}))
  for (const what of Object.keys(all[0]!)) {
    const tookMs: number[][] = processors.map(() => [])
    for (let n = 0; n < READS; n++) {
      for (const [index, requests] of all.entries()) {
        const startedAt = performance.now()
        await requests[what]!(n)
        tookMs[index]!.push(performance.now() - startedAt)
      }
    }
    for (const [index, took] of tookMs.entries()) medians[index]![what] = median(took.slice(READS / 4))
  }
  return medians
}

async function requestsTo(processor: Processor): Promise<Record<string, (n: number) => Promise<unknown>>> {
  const conversations = (await processor.get('/v1/inbox/conversations')).conversations as { id: number }[]
  const ids = conversations.map(({ id }) => id)
  return {
    'a page of the list': () => processor.get('/v1/inbox/events'),
    'a page of a search': () => processor.get('/v1/inbox/events?q=grace+malta'),
    'a page of conversations': () => processor.get('/v1/inbox/conversations'),
    'a page of one conversation': (n) => processor.get(`/v1/inbox/conversations/${ids[n % ids.length]}/events`),
    'a claim of 10': () => processor.post('/v1/inbox/claims', { limit: 10, lease_s: 600 }),
  }
}

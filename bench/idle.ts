// `bench idle`: the CPU cost of open streams and waiting claims while no message arrives.
// Promises: every stream and every claim is open during the whole measurement, or the run fails; bounded in time;
// children and temporary folders are removed in any case.

import http, { type IncomingMessage } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { STORES, type StoreName, startDatabases, storeNamed } from './contestants/databases.ts'
import { startIntray } from './contestants/intray.ts'
import { Processor } from './inbox/client.ts'
import { machineFacts } from './machine.ts'
import { cpuSecondsOf, machineTicks, stealShare } from './proc.ts'
import { Scope } from './scope.ts'
import { table } from './table.ts'
import { UsageError } from './usage-error.ts'

const HELP = `Usage: npm run bench -- idle [options]

  --store <name>      ${STORES.join(', ')} (sqlite)
  --streams <n>       (1000)
  --polls <n>         claims that wait (100)
  --seconds <n>       how long it is measured (60)
  --folder <path>     where the temporary folder is made; must be a real disk (/tmp)
  --help`

const MAX_CORE_SHARE = 0.03
/** Opening streams and claims causes work for this long. */
const SETTLE_MS = 5000
/** The longest wait of a claim. */
const WAIT_S = 20

interface Idle {
  readonly report: string
  /** Every stream stayed open. */
  readonly isValid: boolean
}

interface Options {
  readonly store: StoreName
  readonly streams: number
  readonly polls: number
  readonly seconds: number
  readonly folder: string
}

export async function runIdle(argv: readonly string[]): Promise<number> {
  const options = parse(argv)
  if (!options) {
    console.log(HELP)
    return 0
  }
  const scope = new Scope(options.folder)
  try {
    const { cpu, cores, node } = machineFacts()
    console.log(`${cpu}, ${cores} cores, Node ${node}, ${options.store}\n`)
    const { report, isValid } = await measure(scope, options)
    console.log(report)
    return isValid ? 0 : 1
  } finally {
    await scope.close()
  }
}

function parse(argv: readonly string[]): Options | null {
  const text = { type: 'string' } as const
  const options = { store: text, streams: text, polls: text, seconds: text, folder: text } as const
  const { values } = parseArgs({ args: [...argv], options: { ...options, help: { type: 'boolean', short: 'h' } } })
  if (values.help) return null
  const count = (name: string, value: string | undefined, fallback: number, least: number): number => {
    const given = Number(value ?? fallback)
    if (!Number.isSafeInteger(given) || given < least) {
      throw new UsageError(`--${name} must be a whole number from ${least} on.`)
    }
    return given
  }
  return {
    store: storeNamed(values.store),
    streams: count('streams', values.streams, 1000, 0),
    polls: count('polls', values.polls, 100, 0),
    seconds: count('seconds', values.seconds, 60, 1),
    folder: values.folder ?? '/tmp',
  }
}

async function measure(scope: Scope, { store, streams, polls, seconds }: Options): Promise<Idle> {
  const databases = await startDatabases(store, scope)
  const { port, pids, cli } = await startIntray(scope, databases)
  const created = await cli(['token', 'create', '--account', '7', '--company', '42', '--scope', 'processor', '--json'])
  const token = String(created.token)
  const ended = new AbortController()
  const watched = await Promise.all(Array.from({ length: streams }, () => openStream(port, token, ended.signal)))
  const processor = new Processor(port, token, polls)
  const polling = Array.from({ length: polls }, () => poll(processor, ended.signal))
  await Promise.race([pause(SETTLE_MS), ...polling])

  const [cpuBefore, ticksBefore] = [cpuSecondsOf(pids), machineTicks()]
  const startedAt = performance.now()
  await Promise.race([pause(seconds * 1000), ...polling])
  const cpu = (cpuSecondsOf(pids) ?? Number.NaN) - (cpuBefore ?? Number.NaN)
  const cores = cpu / ((performance.now() - startedAt) / 1000)
  const stolen = stealShare(ticksBefore, machineTicks())
  const open = watched.filter((stream) => !stream.destroyed).length
  ended.abort()
  processor.close()
  await Promise.allSettled(polling)
  await databases.close()
  const rows = [
    ['of one core', `${(cores * 100).toFixed(2)} %`, `< ${MAX_CORE_SHARE * 100} %`, verdict(cores < MAX_CORE_SHARE)],
    ['streams still open', String(open), String(streams), verdict(open === streams)],
  ]
  const columns = [`${streams} streams, ${polls} claims that wait`, '', 'must be', ''].map((title) => ({ title }))
  const report = `${table(columns, rows)}\n\n${seconds} s, steal ${((stolen ?? 0) * 100).toFixed(1)} %`
  return { report, isValid: open === streams }
}

function openStream(port: number, token: string, signal: AbortSignal): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const headers = { Authorization: `Bearer ${token}` }
    const request = http.get({ host: '127.0.0.1', port, path: '/v1/inbox/stream', headers, agent: false, signal })
    request.on('error', reject)
    request.on('response', (response) => {
      // Heartbeats. A closed stream is detected at the end.
      response.on('error', () => {}).resume()
      if (response.statusCode === 200) resolve(response)
      else reject(new Error(`a stream was answered ${response.statusCode}`))
    })
  })
}

/** Claims one after the other until aborted; rejects on any other error. */
async function poll(processor: Processor, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      await processor.post('/v1/inbox/claims', { limit: 1, wait_s: WAIT_S })
    } catch (error) {
      if (!signal.aborted) throw error
    }
  }
}

function verdict(isHeld: boolean): string {
  return isHeld ? 'pass' : 'FAIL'
}

// One strike: a service on a database that is near a checkpoint, strace on it, messages one by one and four at once with
// an index batch after each, and a fault at the n-th sync or write from there. Then a restart, everything unknown sent
// again, everything read back.

import { join } from 'node:path'
import { check, type Findings } from './check.ts'
import { Inbox } from './inbox.ts'
import { type AnswerLine, Journal } from './journal.ts'
import { Load } from './load.ts'
import type { NearCheckpoint } from './near-checkpoint.ts'
import type { ProofContext } from './proof.ts'
import { Service } from './service.ts'
import { type Injection, injectedErrors, injectedKill, Strace, SYNCS, WRITES } from './strace.ts'

export interface Fault {
  readonly name: string
  readonly calls: readonly string[]
  readonly what: string
  /** What the service must do then. */
  readonly must: 'is killed' | 'ends by itself' | 'goes on'
}

export const FAULTS: readonly Fault[] = [
  { name: 'kill at a sync', calls: SYNCS, what: 'signal=KILL', must: 'is killed' },
  { name: 'kill at a write', calls: WRITES, what: 'signal=KILL', must: 'is killed' },
  { name: 'EIO at a sync', calls: SYNCS, what: 'error=EIO', must: 'ends by itself' },
  { name: 'EIO at a write', calls: WRITES, what: 'error=EIO', must: 'ends by itself' },
  { name: 'ENOSPC at a write', calls: WRITES, what: 'error=ENOSPC', must: 'goes on' },
]

export type Place = 'commit' | 'index batch' | 'checkpoint'

export interface Struck {
  /** 0: the n-th call was never made. */
  readonly injected: number
  readonly place: Place
  /** Did the service end by itself, and how? Null: it went on. */
  readonly exitCode: number | 'killed' | null
  /** Answered with "unknown" (or not at all), and stored all the same. */
  readonly storedUnknown: number
  readonly findings: Findings
  /** What it should not have done. */
  readonly broken: readonly string[]
}

const CONNECTIONS = 4
/** How Node names the threads of its workers: the one that writes the journal and the one that writes the index. */
const WRITERS = 'WorkerThread'
/** More than enough for 60 syncs: a round makes at least one, for its commit. */
const MAX_ROUNDS = 80
/** A service that acknowledged so many rounds in a row has not noticed the fault, or is over it. */
const ROUNDS_AFTER = 3
const RECOVER_LIMIT_MS = 30_000

export type Part = 'journal' | 'index'
const FILES: Readonly<Record<Part, readonly string[]>> = {
  journal: ['intray.db', 'intray.db-wal'],
  index: ['intray.index.db', 'intray.index.db-wal'],
}

export interface StrikeOptions {
  readonly fault: Fault
  readonly nth: number
  /** Which database it is about; the journal, unless told otherwise. */
  readonly part?: Part
  /** Instead of the service: a control. */
  readonly command?: readonly string[]
}

export async function strike(
  context: Pick<ProofContext, 'folder' | 'random' | 'onCleanup'>,
  template: NearCheckpoint,
  options: StrikeOptions,
): Promise<Struck> {
  const { fault, nth, command } = options
  const folder = join(context.folder, 'struck')
  const databaseUrl = template.copyTo(folder)
  const { env } = template
  const under = new Service(context, { databaseUrl, env, ...(command ? { command } : {}) })
  const answers: AnswerLine[] = []
  const journal = new Journal(join(folder, 'journal'))
  let service = under
  const load = new Load({
    journal,
    token: template.token,
    connections: CONNECTIONS,
    random: context.random.fork(`${fault.name} ${nth}`),
    port: () => service.port,
    onTrouble: fault.must === 'goes on' ? 'go-on' : 'end',
    onAnswer: (answer) => answers.push(answer),
    onAcknowledged: () => {},
  })
  const inbox = new Inbox(() => service.port, template.processorToken)
  try {
    await template.startOn(folder, under)
    const { place, broken, exitCode, injected } = await run(under, load, inbox, folder, options)
    await under.kill()
    service = new Service(context, { databaseUrl, env })
    await service.start()
    const { storedUnknown } = await check(journal.path, inbox)
    await load.settle()
    const findings = await check(journal.path, inbox)
    await service.kill()
    return { injected, place, exitCode, storedUnknown, findings, broken: [...broken, ...strange(answers)] }
  } finally {
    load.close()
    inbox.close()
    await journal.close()
  }
}

type Run = Pick<Struck, 'place' | 'broken' | 'exitCode' | 'injected'>

async function run(
  service: Service,
  load: Load,
  inbox: Inbox,
  folder: string,
  { fault, nth, part = 'journal' }: StrikeOptions,
): Promise<Run> {
  const { calls, what } = fault
  const output = join(folder, 'strace')
  const strace = await Strace.attach({
    pid: service.pid,
    thread: WRITERS,
    files: FILES[part].map((name) => join(folder, name)),
    output,
    calls: [...SYNCS, ...WRITES],
    inject: { calls, what, nth },
  })
  const hasStruck = () => !service.isRunning || strace.read().includes('(INJECTED)')
  const send = (round: number) => load.run(round % 2 === 0 ? CONNECTIONS : 1)
  // Answered when the index covers everything, or after 2 s.
  const awaitIndex = () => inbox.ask('GET', '/v1/inbox/events?limit=1').catch(() => null)
  for (let round = 1; round <= MAX_ROUNDS && !hasStruck(); round += 1) {
    await send(round)
    await awaitIndex()
  }
  const hasRecovered = await untilOverOrRecovered(service, load, async (round) => {
    await send(round)
    await awaitIndex()
  })
  const isOver = !service.isRunning
  const exitCode = isOver ? ((await service.exited) ?? 'killed') : null
  await (isOver ? strace.ended() : strace.end())
  const seen = strace.read()
  const found =
    what === 'signal=KILL' ? [injectedKill(seen, calls, nth)].filter((one) => one !== null) : injectedErrors(seen)
  const atCheckpoint = found.some((one) => isOfCheckpoint(seen, one))
  const stopCode = isOver ? 0 : await service.stop()
  return {
    injected: found.length,
    place: atCheckpoint ? 'checkpoint' : part === 'index' ? 'index batch' : 'commit',
    exitCode,
    broken: [
      ...misbehaviour(fault, exitCode, atCheckpoint),
      ...(isOver || hasRecovered ? [] : [`${fault.name}: nothing was acknowledged afterwards`]),
      ...(stopCode === 0 ? [] : [`${fault.name}: it did not stop in order afterwards (${stopCode})`]),
    ],
  }
}

/** A service that ends by itself takes a moment for its last answers; one that goes on acknowledges again. */
async function untilOverOrRecovered(
  service: Service,
  load: Load,
  round: (round: number) => Promise<void>,
): Promise<boolean> {
  const deadline = Date.now() + RECOVER_LIMIT_MS
  let good = 0
  for (let count = 1; service.isRunning && good < ROUNDS_AFTER; count += 1) {
    if (Date.now() > deadline) return false
    const before = load.acknowledged
    await round(count)
    good = load.acknowledged > before ? good + 1 : 0
  }
  return good >= ROUNDS_AFTER
}

function misbehaviour(fault: Fault, exitCode: Struck['exitCode'], atCheckpoint: boolean): string[] {
  switch (fault.must) {
    case 'is killed':
      return exitCode === 'killed' ? [] : [`${fault.name}: it was not killed (${exitCode})`]
    case 'ends by itself':
      // An automatic checkpoint that fails is no failure of the commit before it, which is in the WAL. SQLite keeps the WAL,
      // writes every page of it again with the next checkpoint and syncs again before it lets go of it.
      if (exitCode === null) return atCheckpoint ? [] : [`${fault.name}: it went on as if nothing had happened`]
      return exitCode === 0 || exitCode === 'killed' ? [`${fault.name}: it ended with ${exitCode}`] : []
    case 'goes on':
      return exitCode === null ? [] : [`${fault.name}: it ended with ${exitCode}`]
  }
}

/** A write to the database file, its sync, or the sync of a WAL to which nothing was written since the last one. */
function isOfCheckpoint(seen: string, { file, line }: Injection): boolean {
  if (file.endsWith('.db')) return true
  let unsynced = 0
  for (const one of seen.split('\n')) {
    const isSync = SYNCS.some((call) => one.includes(`${call}(`))
    if (one === line) return isSync && unsynced === 0
    if (!one.includes('-wal>')) continue
    unsynced = isSync ? 0 : unsynced + 1
  }
  return false
}

/** Everything that is neither an acknowledgement, nor a refusal of a bad message, nor an honest "unknown". */
function strange(answers: readonly AnswerLine[]): string[] {
  const isFine = ({ status, error, outcome }: AnswerLine) =>
    outcome === 'acknowledged' ||
    status === 0 ||
    status === 400 ||
    (status === 503 && outcome === 'unknown' && error === 'storage_unavailable')
  return answers.filter((one) => !isFine(one)).map(({ status, error }) => `answered ${status} ${error}`)
}

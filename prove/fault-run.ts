// One run of `prove nth`: a service on a database near a checkpoint, traced by strace; groups of messages and single
// ones with an index batch after each, and a fault at the n-th sync or write. Then a restart, all unknown messages sent
// again, everything read back.
//
// A group is sent while the service is stopped (SIGSTOP): when it resumes, the whole group arrives in one turn of its
// event loop and shares one commit. So the messages of a group without an answer at the fault are those of the faulted
// commit.

import { join } from 'node:path'
import { check, type Findings } from './check.ts'
import { Inbox } from './inbox.ts'
import { type AnswerLine, Journal } from './journal.ts'
import { Load } from './load.ts'
import type { NearCheckpoint } from './near-checkpoint.ts'
import type { ProofContext } from './proof.ts'
import { Service } from './service.ts'
import { type Injection, injectedErrors, injectedKill, Strace, SYNCS, WRITES } from './strace.ts'
import { waitFor } from './wait.ts'

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

export interface FaultRun {
  /** 0: the n-th call was never made. */
  readonly injected: number
  readonly place: Place
  /** Messages without an answer when the fault was injected; 0 if none was being stored. */
  readonly inFlight: number
  /** How the service ended by itself; null: it went on. */
  readonly exitCode: number | 'killed' | null
  /** Answered "unknown" (or not at all), but stored. */
  readonly storedUnknown: number
  readonly findings: Findings
  /** Forbidden behaviour. */
  readonly broken: readonly string[]
}

/** More than a few, but so small that 60 calls reach beyond its commit into a checkpoint. */
const GROUP = 16
/** Every n-th round sends a single message. */
const SINGLE_EVERY = 3
const MAX_TEXT_PIECES = 20
/** Node's name for worker threads: the one that writes the journal and the one that writes the index. */
const WRITERS = 'WorkerThread'
/** More than enough for 60 syncs: a round makes at least one, for its commit. */
const MAX_ROUNDS = 80
/** A service that acknowledged this many rounds in a row has not noticed the fault, or has recovered. */
const ROUNDS_AFTER = 3
const RECOVER_LIMIT_MS = 30_000

export type Part = 'journal' | 'index'
const FILES: Readonly<Record<Part, readonly string[]>> = {
  journal: ['intray.db', 'intray.db-wal'],
  index: ['intray.index.db', 'intray.index.db-wal'],
}

export interface FaultRunOptions {
  readonly fault: Fault
  readonly nth: number
  /** The database file to fault; the journal by default. */
  readonly part?: Part
  /** Instead of the service: a control. */
  readonly command?: readonly string[]
}

export async function runWithFault(
  context: Pick<ProofContext, 'folder' | 'random' | 'onCleanup'>,
  template: NearCheckpoint,
  options: FaultRunOptions,
): Promise<FaultRun> {
  const { fault, nth, command } = options
  const folder = join(context.folder, 'fault-run')
  const databaseUrl = template.copyTo(folder)
  const { env } = template
  const under = new Service(context, { databaseUrl, env, ...(command ? { command } : {}) })
  const answers: AnswerLine[] = []
  const moment = new FaultMoment()
  const journal = new Journal(join(folder, 'journal'))
  let service = under
  const load = new Load({
    journal,
    token: template.token,
    connections: GROUP,
    maxTextPieces: MAX_TEXT_PIECES,
    random: context.random.fork(`${fault.name} ${nth}`),
    port: () => service.port,
    onTrouble: fault.must === 'goes on' ? 'go-on' : 'end',
    onAnswer: (answer) => {
      answers.push(answer)
      moment.answered(answer, load.inFlight + 1)
    },
    onAcknowledged: () => {},
  })
  const inbox = new Inbox(() => service.port, template.processorToken)
  try {
    await template.startOn(folder, under)
    await load.connect()
    const { broken, ...outcome } = await run(under, load, inbox, moment, folder, options)
    await under.kill()
    service = new Service(context, { databaseUrl, env })
    await service.start()
    const { storedUnknown } = await check(journal.path, inbox)
    await load.settle()
    const findings = await check(journal.path, inbox)
    await service.kill()
    return { ...outcome, storedUnknown, findings, broken: [...broken, ...strange(answers)] }
  } finally {
    load.close()
    inbox.close()
    await journal.close()
  }
}

/** How many messages had no answer when the fault was injected: known from the first answer after it. */
class FaultMoment {
  inFlight: number | null = null
  hasFaulted: () => boolean = () => false

  answered({ status }: AnswerLine, inFlight: number): void {
    // A killed service gives no answer.
    if (this.inFlight === null && (status === 0 || this.hasFaulted())) this.inFlight = inFlight
  }
}

type Run = Pick<FaultRun, 'place' | 'broken' | 'exitCode' | 'injected' | 'inFlight'>

async function run(
  service: Service,
  load: Load,
  inbox: Inbox,
  moment: FaultMoment,
  folder: string,
  { fault, nth, part = 'journal' }: FaultRunOptions,
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
  moment.hasFaulted = () => strace.read().includes('(INJECTED)')
  const hasFaulted = () => !service.isRunning || moment.hasFaulted()
  const send = (round: number) => (round % SINGLE_EVERY === 0 ? load.run(1) : sendGroup(service, load))
  // Answered when the index covers everything, or after 2 s.
  const awaitIndex = () => inbox.ask('GET', '/v1/inbox/events?limit=1').catch(() => null)
  for (let round = 1; round <= MAX_ROUNDS && !hasFaulted(); round += 1) {
    await send(round)
    await awaitIndex()
  }
  const inFlight = moment.inFlight ?? 0
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
    inFlight,
    place: atCheckpoint ? 'checkpoint' : part === 'index' ? 'index batch' : 'commit',
    exitCode,
    broken: [
      ...misbehaviour(fault, exitCode, atCheckpoint),
      ...(isOver || hasRecovered ? [] : [`${fault.name}: nothing was acknowledged afterwards`]),
      ...(stopCode === 0 ? [] : [`${fault.name}: it did not stop in order afterwards (${stopCode})`]),
    ],
  }
}

/** The whole group arrives at once. */
async function sendGroup(service: Service, load: Load): Promise<void> {
  if (!service.isRunning) return load.run(GROUP)
  service.pause()
  const before = load.answered
  const sent = load.run(GROUP)
  try {
    // A request whose connection an ending service has closed fails at once.
    await waitFor('a group to be sent', () => load.inFlight + load.answered - before >= GROUP)
  } finally {
    service.resume()
  }
  await sent
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

function misbehaviour(fault: Fault, exitCode: FaultRun['exitCode'], atCheckpoint: boolean): string[] {
  switch (fault.must) {
    case 'is killed':
      return exitCode === 'killed' ? [] : [`${fault.name}: it was not killed (${exitCode})`]
    case 'ends by itself':
      // A failed automatic checkpoint does not affect the commit before it, which is in the WAL. SQLite keeps the WAL,
      // writes every page of it again at the next checkpoint and syncs again before it reuses it.
      if (exitCode === null) return atCheckpoint ? [] : [`${fault.name}: it went on as if nothing had happened`]
      return exitCode === 0 || exitCode === 'killed' ? [`${fault.name}: it ended with ${exitCode}`] : []
    case 'goes on':
      return exitCode === null ? [] : [`${fault.name}: it ended with ${exitCode}`]
  }
}

/** A write to the database file, its sync, or a sync of a WAL without writes since the last one. */
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

/** Answers other than an acknowledgement, a refusal of a bad message, or an honest "unknown". */
function strange(answers: readonly AnswerLine[]): string[] {
  const isFine = ({ status, error, outcome }: AnswerLine) =>
    outcome === 'acknowledged' ||
    status === 0 ||
    status === 400 ||
    (status === 503 && outcome === 'unknown' && error === 'storage_unavailable')
  return answers.filter((one) => !isFine(one)).map(({ status, error }) => `answered ${status} ${error}`)
}

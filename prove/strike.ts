// One strike: a service, groups of messages and single ones with an index batch after each, and a fault at the n-th call of its
// store from there. Then a restart, everything unknown sent again, everything read back. Which calls those are is the target's
// own: sqlite-target.ts, postgres-target.ts.
//
// A group is sent while the service stands still (SIGSTOP): when it goes on, all of it is there in one turn of its event loop and
// shares one commit. So the messages of a group that had no answer when the fault was injected are what the struck commit held.

import { join } from 'node:path'
import { check, type Findings } from './check.ts'
import { Inbox } from './inbox.ts'
import { type AnswerLine, Journal } from './journal.ts'
import { Load } from './load.ts'
import type { ProofContext } from './proof.ts'
import { Service } from './service.ts'
import { waitFor } from './wait.ts'

export interface Fault {
  readonly name: string
  /** What the service must do then. */
  readonly must: 'is killed' | 'ends by itself' | 'goes on'
}

export type Place = 'commit' | 'index batch' | 'checkpoint' | 'other statement'

/** Which database it is about, where the index has one of its own. */
export type Part = 'journal' | 'index'

/** A store whose n-th call can be made to fail. */
export interface Target<F extends Fault> {
  readonly token: string
  readonly processorToken: string
  readonly env: Readonly<Record<string, string>>
  /** A database like every other one of this target, with a folder for what else is written; gone with the next. */
  prepare(): Promise<Prepared<F>>
}

export interface Prepared<F extends Fault> {
  readonly folder: string
  /** For the service that is struck, and for the one that reads everything back. */
  readonly struckUrl: string
  readonly plainUrl: string
  start(service: Service): Promise<void>
  /** The n-th call from now on. */
  arm(service: Service, load: Load, options: StrikeOptions<F>): Promise<Injector>
  close(): Promise<void>
}

export interface Injector {
  /** Something was injected that the service may have survived. */
  hasStruck(): boolean
  /** When it is over, with the service or without it. */
  end(isOver: boolean): Promise<{ readonly injected: number; readonly place: Place }>
}

export interface Struck {
  /** 0: the n-th call was never made. */
  readonly injected: number
  readonly place: Place
  /** Messages without an answer when the fault was injected; 0 if none was being stored. */
  readonly inFlight: number
  /** Did the service end by itself, and how? Null: it went on. */
  readonly exitCode: number | 'killed' | null
  /** Answered with "unknown" (or not at all), and stored all the same. */
  readonly storedUnknown: number
  readonly findings: Findings
  /** What it should not have done. */
  readonly broken: readonly string[]
}

/** More than a few, and so little that the 60 calls reach beyond its commit into a checkpoint. */
const GROUP = 16
/** One round in so many sends a single message. */
const SINGLE_EVERY = 3
const MAX_TEXT_PIECES = 20
/** More than enough for 60 syncs: a round makes at least one, for its commit. */
const MAX_ROUNDS = 80
/** A service that acknowledged so many rounds in a row has not noticed the fault, or is over it. */
const ROUNDS_AFTER = 3
const RECOVER_LIMIT_MS = 30_000

export interface StrikeOptions<F extends Fault> {
  readonly fault: F
  readonly nth: number
  /** The journal, unless told otherwise. */
  readonly part?: Part
  /** Instead of the service: a control. */
  readonly command?: readonly string[]
}

export async function strike<F extends Fault>(
  context: Pick<ProofContext, 'folder' | 'onCleanup' | 'random'>,
  target: Target<F>,
  options: StrikeOptions<F>,
): Promise<Struck> {
  const { fault, nth, command } = options
  const { env } = target
  const prepared = await target.prepare()
  const under = new Service(context, { databaseUrl: prepared.struckUrl, env, ...(command ? { command } : {}) })
  const answers: AnswerLine[] = []
  const moment = new Moment()
  const journal = new Journal(join(prepared.folder, 'journal'))
  let service = under
  const load = new Load({
    journal,
    token: target.token,
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
  const inbox = new Inbox(() => service.port, target.processorToken)
  try {
    await prepared.start(under)
    await load.connect()
    const injector = await prepared.arm(under, load, options)
    const { broken, ...struck } = await run(under, load, inbox, moment, injector, fault)
    await under.kill()
    service = new Service(context, { databaseUrl: prepared.plainUrl, env })
    await service.start()
    const { storedUnknown } = await check(journal.path, inbox)
    await load.settle()
    const findings = await check(journal.path, inbox)
    await service.kill()
    return { ...struck, storedUnknown, findings, broken: [...broken, ...strange(answers)] }
  } finally {
    load.close()
    inbox.close()
    await journal.close()
    await prepared.close()
  }
}

/** How many messages had no answer when the fault was injected: told by the first answer after it. */
class Moment {
  inFlight: number | null = null
  hasStruck: () => boolean = () => false

  answered({ status }: AnswerLine, inFlight: number): void {
    // Of one that was killed there is no answer.
    if (this.inFlight === null && (status === 0 || this.hasStruck())) this.inFlight = inFlight
  }
}

type Run = Pick<Struck, 'place' | 'broken' | 'exitCode' | 'injected' | 'inFlight'>

async function run(
  service: Service,
  load: Load,
  inbox: Inbox,
  moment: Moment,
  injector: Injector,
  fault: Fault,
): Promise<Run> {
  moment.hasStruck = () => injector.hasStruck()
  const hasStruck = () => !service.isRunning || injector.hasStruck()
  const send = (round: number) => (round % SINGLE_EVERY === 0 ? load.run(1) : sendGroup(service, load))
  // Answered when the index covers everything, or after 2 s.
  const awaitIndex = () => inbox.ask('GET', '/v1/inbox/events?limit=1').catch(() => null)
  for (let round = 1; round <= MAX_ROUNDS && !hasStruck(); round += 1) {
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
  const { injected, place } = await injector.end(isOver)
  const stopCode = isOver ? 0 : await service.stop()
  return {
    injected,
    inFlight,
    place,
    exitCode,
    broken: [
      ...misbehaviour(fault, exitCode, place === 'checkpoint'),
      ...(isOver || hasRecovered ? [] : [`${fault.name}: nothing was acknowledged afterwards`]),
      ...(stopCode === 0 ? [] : [`${fault.name}: it did not stop in order afterwards (${stopCode})`]),
    ],
  }
}

/** All of it arrives at once. */
async function sendGroup(service: Service, load: Load): Promise<void> {
  if (!service.isRunning) return load.run(GROUP)
  service.pause()
  const before = load.answered
  const sent = load.run(GROUP)
  try {
    // One whose connection a service that is ending has closed has failed at once.
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

/** Everything that is neither an acknowledgement, nor a refusal of a bad message, nor an honest "unknown". */
function strange(answers: readonly AnswerLine[]): string[] {
  const isFine = ({ status, error, outcome }: AnswerLine) =>
    outcome === 'acknowledged' ||
    status === 0 ||
    status === 400 ||
    (status === 503 && outcome === 'unknown' && error === 'storage_unavailable')
  return answers.filter((one) => !isFine(one)).map(({ status, error }) => `answered ${status} ${error}`)
}

// One trial: a server under load, Litestream beside it, kills and restarts of both, and at the end the loss of both. What
// Litestream had reported as replicated before, and what the senders have acknowledgements for, is returned with the replica.

import { mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { readJournal } from '../journal.ts'
import type { Mix } from '../messages.ts'
import type { ProofContext } from '../proof.ts'
import { newSubject, type Subject } from '../subject.ts'
import { waitFor } from '../wait.ts'
import { Litestream } from './program.ts'

/** Everything can be sent again, and nothing is refused. */
const MIX: Mix = { keyed: 0, bare: 0, broken: 0, again: 5, conflicting: 0 }
/** About 5 kB: the WAL is to reach a checkpoint. */
const MAX_TEXT_PIECES = 1500
const MAX_ACKNOWLEDGEMENTS = 100

export interface Acknowledged {
  readonly ref: string
  readonly body: Buffer
  readonly id: number
  /** Litestream had it in the replica, by its own word. */
  readonly isReplicated: boolean
}

export interface Faults {
  litestreamKilled: number
  litestreamStopped: number
  serverKilled: number
  serverStopped: number
  /** The server emptied its WAL while no Litestream ran. */
  checkpointed: number
}

export interface Trial {
  readonly subject: Subject
  readonly litestream: Litestream
  readonly acknowledged: readonly Acknowledged[]
  /** Erased after the last sync: only the erasure log knows it. */
  readonly erased: number
  /** Holds the erasure log. */
  readonly backups: string
  readonly syncs: number
  /** Answers 503 `storage_unavailable`: a writer that waited for a lock in vain. */
  readonly busy: number
  readonly maxWalBytes: number
  readonly maxStopMs: number
}

interface TrialOptions {
  readonly name: string
  readonly program: string
  readonly faults: Faults
}

export async function runTrial(context: ProofContext, options: TrialOptions): Promise<Trial> {
  const trial = new RunningTrial(context, options, await prepare(context, options))
  return trial.run()
}

/** The server is not started. */
export async function prepare(
  context: ProofContext,
  { name, program, checkpointPages }: { name: string; program: string; checkpointPages?: number },
) {
  const folder = join(context.folder, name)
  const database = join(folder, 'data', 'intray.db')
  const backups = join(folder, 'backups')
  mkdirSync(backups, { recursive: true })
  const counted = { busy: 0 }
  const subject = await newSubject(context, {
    name,
    service: { databaseUrl: `sqlite:${database}`, env: { INTRAY_ERASURE_LOG_TO: backups } },
    load: {
      mix: MIX,
      onTrouble: 'resend',
      maxTextPieces: MAX_TEXT_PIECES,
      onAnswer: ({ error }) => {
        if (error === 'storage_unavailable') counted.busy += 1
      },
    },
  })
  const litestream = new Litestream(context, {
    program,
    database,
    folder: join(folder, 'litestream'),
    ...(checkpointPages === undefined ? {} : { checkpointPages }),
  })
  return { subject, litestream, database, backups, counted }
}

type Prepared = Awaited<ReturnType<typeof prepare>>

class RunningTrial {
  readonly #context: ProofContext
  readonly #faults: Faults
  readonly #name: string
  readonly #prepared: Prepared
  /** Acknowledgements that came before the last sync that Litestream reported began. */
  #replicated = 0
  #syncs = 0
  #maxWalBytes = 0
  #maxStopMs = 0
  #isOver = false

  constructor(context: ProofContext, { faults, name }: TrialOptions, prepared: Prepared) {
    this.#context = context
    this.#faults = faults
    this.#name = name
    this.#prepared = prepared
  }

  async run(): Promise<Trial> {
    const { subject, litestream, backups, counted } = this.#prepared
    const { service, load } = subject
    await service.start()
    await litestream.start()
    const syncing = this.#syncAtTimes()
    const running = load.run()
    for (const strike of this.#shuffled()) {
      await this.#acknowledgeMore()
      await strike()
    }
    await this.#acknowledgeMore()
    const before = this.#syncs
    await waitFor('a sync', () => this.#syncs > before + 1)
    this.#isOver = true
    await litestream.kill()
    this.#faults.litestreamKilled += 1
    await syncing
    // What the replica lacks: messages, and an erasure.
    await this.#acknowledgeMore()
    const erased = (await subject.inbox.rows())[0]!.id
    await this.#erase(erased)
    this.#faults.serverKilled += 1
    const killed = service.kill()
    const stopped = load.stop()
    await killed
    await stopped
    await running
    return {
      subject,
      litestream,
      erased,
      backups,
      acknowledged: acknowledgedIn(join(this.#context.folder, `${this.#name}.journal`), this.#replicated),
      syncs: this.#syncs,
      busy: counted.busy,
      maxWalBytes: this.#maxWalBytes,
      maxStopMs: this.#maxStopMs,
    }
  }

  #shuffled(): (() => Promise<void>)[] {
    const { random } = this.#context
    const left = [
      () => this.#killLitestream(),
      () => this.#killServer(),
      () => this.#killBoth(),
      () => this.#stopLitestream(),
      () => this.#stopServer(),
      () => this.#checkpointAlone(),
    ]
    const order: (() => Promise<void>)[] = []
    while (left.length > 0) order.push(...left.splice(random.below(left.length), 1))
    return order
  }

  async #killLitestream(): Promise<void> {
    const { litestream } = this.#prepared
    await litestream.kill()
    this.#faults.litestreamKilled += 1
    await this.#acknowledgeMore()
    await litestream.start()
  }

  async #killServer(): Promise<void> {
    const { service } = this.#prepared.subject
    await service.kill()
    this.#faults.serverKilled += 1
    await service.start()
  }

  async #killBoth(): Promise<void> {
    const { subject, litestream } = this.#prepared
    await Promise.all([litestream.kill(), subject.service.kill()])
    this.#faults.litestreamKilled += 1
    this.#faults.serverKilled += 1
    await subject.service.start()
    await litestream.start()
  }

  /** An erasure ends only while no Litestream runs. */
  async #stopLitestream(): Promise<void> {
    const { subject, litestream } = this.#prepared
    const rows = await subject.inbox.rows()
    const erased = this.#erase(this.#context.random.pick(rows.slice(1)).id)
    await litestream.stop()
    this.#faults.litestreamStopped += 1
    await erased
    await litestream.start()
  }

  async #stopServer(): Promise<void> {
    const { service } = this.#prepared.subject
    const startedAt = performance.now()
    await service.stop()
    this.#maxStopMs = Math.max(this.#maxStopMs, performance.now() - startedAt)
    this.#faults.serverStopped += 1
    await service.start()
  }

  /** Litestream returns soon after the server has emptied its WAL: much of what it had read is still to be overwritten. */
  async #checkpointAlone(): Promise<void> {
    const { litestream } = this.#prepared
    await litestream.kill()
    this.#faults.litestreamKilled += 1
    let largest = 0
    await waitFor('a checkpoint', () => {
      const bytes = this.#walBytes()
      largest = Math.max(largest, bytes)
      return bytes < largest
    })
    this.#faults.checkpointed += 1
    await litestream.start()
  }

  async #erase(id: number): Promise<void> {
    const { code, stderr } = await this.#prepared.subject.service.command(['erase', '--event', String(id), '--yes'])
    if (code !== 0) throw new Error(`erase failed: ${stderr}`)
  }

  async #syncAtTimes(): Promise<void> {
    const { litestream, subject } = this.#prepared
    while (!this.#isOver) {
      const acknowledged = subject.load.acknowledged
      if (await litestream.sync()) {
        this.#replicated = acknowledged
        this.#syncs += 1
      }
      await new Promise((resolve) => setTimeout(resolve, this.#context.random.below(400)))
    }
  }

  async #acknowledgeMore(): Promise<void> {
    const { load } = this.#prepared.subject
    const goal = load.acknowledged + 1 + this.#context.random.below(MAX_ACKNOWLEDGEMENTS)
    await waitFor('messages to be acknowledged', () => {
      this.#walBytes()
      return load.acknowledged >= goal
    })
  }

  #walBytes(): number {
    const bytes = statSync(`${this.#prepared.database}-wal`, { throwIfNoEntry: false })?.size ?? 0
    this.#maxWalBytes = Math.max(this.#maxWalBytes, bytes)
    return bytes
  }
}

/** `replicated`: so many of the acknowledgements were in the replica. */
function acknowledgedIn(journal: string, replicated: number): Acknowledged[] {
  const bodies = new Map<number, { ref: string; body: Buffer }>()
  const byAttempt = new Map<number, number>()
  const found = new Map<number, Acknowledged>()
  let count = 0
  for (const line of readJournal(journal)) {
    if (line.type === 'intent') {
      byAttempt.set(line.attempt, line.message)
      if (line.body !== undefined) bodies.set(line.message, { ref: line.ref!, body: Buffer.from(line.body, 'base64') })
      continue
    }
    if (line.outcome !== 'acknowledged') continue
    count += 1
    const message = byAttempt.get(line.attempt)!
    if (!found.has(message))
      found.set(message, { ...bodies.get(message)!, id: line.id!, isReplicated: count <= replicated })
  }
  return [...found.values()]
}

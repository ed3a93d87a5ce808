// Senders that note what they sent and what was acknowledged, and the audit that holds a database against those notes.
// Tests of kills, stops and failing disks share it, and so does the control that must be found out by it.

import http from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import type { TestAnswer } from './client.ts'
import { send } from './client.ts'
import { type JournalRow, readJournal } from './journal.ts'

/** The same numbers for the same seed: a failure can be played again. */
export function seededRandom(seed: number): (below: number) => number {
  let state = seed >>> 0
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}

export interface Message {
  readonly ref: string
  readonly payload: Buffer
}

/** The senders' side of the story. */
export class Ledger {
  readonly sent = new Map<string, Buffer>()
  /** source_ref → the id in the answer. */
  readonly acknowledged = new Map<string, number>()
  readonly refused: { readonly ref: string; readonly answer: TestAnswer }[] = []
  readonly failed: { readonly ref: string; readonly error: NodeJS.ErrnoException }[] = []
  readonly #random: (below: number) => number
  readonly #maxTextBytes: number

  constructor(seed: number, maxTextBytes = 20_000) {
    this.#random = seededRandom(seed)
    this.#maxTextBytes = maxTextBytes
  }

  /** A message that was never sent before, with bytes of its own that no re-encoding would leave alone. */
  next(): Message {
    const number = this.sent.size + 1
    const ref = `load:${number}`
    const text = '\\u00e9 é 🙂 '.repeat(1 + this.#random(Math.ceil(this.#maxTextBytes / 15)))
    const json = ` { "n" : ${number}.0, "n":${number}, "big":12345678901234567890,"source_ref":"${ref}",
      "channel_ref":"load/${number % 5}", "message":{"type":"text","text":"${text}"} }\n`
    const payload = Buffer.from(json)
    this.sent.set(ref, payload)
    return { ref, payload }
  }

  /** Sent, but nobody told the sender what became of it. */
  get unknown(): string[] {
    return [...this.sent.keys()].filter((ref) => !this.acknowledged.has(ref))
  }
}

export interface LoadOptions {
  readonly port: number
  readonly token: string
  readonly ledger: Ledger
  readonly connections: number
  /** False: a new connection for each message. */
  readonly keepAlive?: boolean
  /** At most so many messages a second, of all connections together; without it, as fast as they are answered. */
  readonly perSecond?: number
  /** The senders stop after so many messages. */
  readonly limit?: number
  /** And once this holds. */
  readonly until?: () => boolean
  readonly onAcknowledged?: (count: number) => void
  /** Whether a message that was answered so is sent again, a bounded number of times. */
  readonly retries?: (answer: TestAnswer) => boolean
}

/** A minute, if answers come at once. */
const MOST_RETRIES = 600
const RETRY_PAUSE_MS = 100

/** Senders on keep-alive connections, each with one request in flight, until each is refused or cut off. */
export class Load {
  readonly finished: Promise<void>
  retried = 0
  readonly #options: LoadOptions
  /** Without one, each message has a connection of its own. */
  readonly #agent: http.Agent | undefined
  #inFlight = 0
  #acknowledged = 0
  #started = 0
  readonly #begunAt = performance.now()

  constructor(options: LoadOptions) {
    this.#options = options
    const { keepAlive = true, connections } = options
    this.#agent = keepAlive ? new http.Agent({ keepAlive, maxSockets: connections }) : undefined
    const senders = Array.from({ length: connections }, () => this.#run())
    this.finished = Promise.all(senders).then(() => this.#agent?.destroy())
  }

  get inFlight(): number {
    return this.#inFlight
  }

  async #run(): Promise<void> {
    const { ledger, limit = Infinity, until = () => false } = this.#options
    while (this.#started < limit && !until()) {
      this.#started += 1
      await this.#due(this.#started)
      const message = ledger.next()
      this.#inFlight += 1
      try {
        if (!this.#note(message, await this.#send(message))) return
      } catch (error) {
        ledger.failed.push({ ref: message.ref, error: error as NodeJS.ErrnoException })
        return
      } finally {
        this.#inFlight -= 1
      }
    }
  }

  async #send({ payload }: Message): Promise<TestAnswer> {
    const { port, token, retries = () => false } = this.#options
    for (let left = MOST_RETRIES; ; left--) {
      const answer = await post(port, token, payload, this.#agent)
      if (left === 0 || !retries(answer)) return answer
      this.retried += 1
      await pause(RETRY_PAUSE_MS)
    }
  }

  /** When message `number` may go. */
  async #due(number: number): Promise<void> {
    const { perSecond } = this.#options
    if (perSecond === undefined) return
    await pause(Math.max(0, this.#begunAt + (number * 1000) / perSecond - performance.now()))
  }

  #note({ ref }: Message, answer: TestAnswer): boolean {
    const { ledger, onAcknowledged } = this.#options
    if (answer.status !== 200 || typeof answer.json?.id !== 'number') {
      ledger.refused.push({ ref, answer })
      return false
    }
    ledger.acknowledged.set(ref, answer.json.id)
    this.#acknowledged += 1
    onAcknowledged?.(this.#acknowledged)
    return true
  }
}

export function post(port: number, token: string, body: Uint8Array | string, agent?: http.Agent): Promise<TestAnswer> {
  return send(port, {
    method: 'POST',
    path: '/v1/inbox/events',
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    body,
    ...(agent ? { agent } : {}),
  })
}

export interface Audit {
  readonly acknowledged: number
  /** Acknowledged, but not there. */
  readonly lost: readonly string[]
  /** There more than once, as events or revisions, whether acknowledged or not. */
  readonly twice: readonly string[]
  /** There, but not with the bytes that were sent. */
  readonly altered: readonly string[]
  /** Acknowledged under another id than the one it has. */
  readonly misnumbered: readonly string[]
  /** Not acknowledged, and there all the same: allowed. */
  readonly storedUnknown: readonly string[]
  /** There, although nobody sent it. */
  readonly unsent: number
}

export interface AuditedRow {
  readonly event: Pick<JournalRow['event'], 'id' | 'sourceRef'>
  readonly payload: Uint8Array | null
}

export async function audit(databaseUrl: string, ledger: Ledger): Promise<Audit> {
  return auditRows(await readJournal(databaseUrl), ledger)
}

/** The same, of rows that were read in another way. */
export function auditRows(journal: readonly AuditedRow[], ledger: Ledger): Audit {
  const rows = new Map<string, { id: number; payload: Uint8Array | null }[]>()
  for (const { event, payload } of journal) {
    const ref = event.sourceRef ?? ''
    rows.set(ref, [...(rows.get(ref) ?? []), { id: event.id, payload }])
  }
  const stored = [...rows.keys()]
  const acknowledged = [...ledger.acknowledged.keys()]
  const isAltered = (ref: string) =>
    rows.get(ref)!.some(({ payload }) => payload === null || !ledger.sent.get(ref)?.equals(payload))
  return {
    acknowledged: acknowledged.length,
    lost: acknowledged.filter((ref) => !rows.has(ref)),
    twice: stored.filter((ref) => rows.get(ref)!.length > 1),
    altered: stored.filter((ref) => ledger.sent.has(ref) && isAltered(ref)),
    misnumbered: acknowledged.filter((ref) => rows.has(ref) && rows.get(ref)![0]!.id !== ledger.acknowledged.get(ref)),
    storedUnknown: stored.filter((ref) => ledger.sent.has(ref) && !ledger.acknowledged.has(ref)),
    unsent: stored.filter((ref) => !ledger.sent.has(ref)).length,
  }
}

/** Nothing lost, doubled, altered or made up. */
export const NOTHING_WRONG = { lost: [], twice: [], altered: [], misnumbered: [], unsent: 0 } as const

export function faultsOf({ lost, twice, altered, misnumbered, unsent }: Audit) {
  return { lost, twice, altered, misnumbered, unsent }
}

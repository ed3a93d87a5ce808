// The client of Intray: sends messages so that none is lost while the service is away, processes events, follows them.

import { randomUUID } from 'node:crypto'
import { outcomeOf, outcomeOfError, type Outcome } from './answers.ts'
import { pause } from './backoff.ts'
import { ClaimsClient } from './claims-client.ts'
import { LeaseLost, Refused, Unavailable, Unrecoverable } from './errors.ts'
import { follow } from './follow.ts'
import { CONNECT_TIMEOUT_MS, HttpClient, REQUEST_TIMEOUT_MS } from './http-client.ts'
import { openOutbox } from './open-outbox.ts'
import type { NewMessage, Outbox, OutboxCounts } from './outbox.ts'
import type { ClaimedEvent, FollowedEvent, InboxEvent, Receipt } from './schema.ts'
import { Sender } from './sender.ts'
import { type Handler, type WorkContext, Worker } from './worker.ts'

export { LeaseLost, Refused, Unavailable, Unrecoverable }
export type { ClaimedEvent, FollowedEvent, Handler, InboxEvent, OutboxCounts, Receipt, WorkContext }

export interface IntrayOptions {
  /** The address of the service, such as https://intray.example. */
  readonly url: string | URL
  readonly token: string
  /** The file that keeps messages until the service has them. `'none'` sends directly, and loses what cannot be sent. */
  readonly outbox: string
  /** Messages of the outbox that are sent at once [8]. */
  readonly concurrency?: number
  readonly connectTimeoutMs?: number
  /** For a whole request [15 s]. */
  readonly requestTimeoutMs?: number
  /** How long sent messages stay in the outbox [7]. */
  readonly keepSentDays?: number
  /** Told what somebody has to look at: a refused message, a token that does not work, a disk error. [prints a line] */
  readonly onProblem?: (error: Error) => void
  /** The clock, in ms since 1970. */
  readonly now?: () => number
}

/** A message: the fields of the API, and any other, also in `meta`. */
export type Message = Omit<InboxEvent, 'meta'> & { readonly meta?: Readonly<Record<string, unknown>> } & Readonly<
    Record<string, unknown>
  >

export interface SendOptions {
  /** Stored with the event, and given to its processor. */
  readonly traceparent?: string
}

export interface Sent {
  readonly source_ref: string
  /** Null while the message waits in the outbox. */
  readonly receipt: Receipt | null
}

export interface RefusedMessage {
  readonly id: number
  readonly source_ref: string
  readonly channel_ref: string | null
  readonly created_at: number
  readonly body: string
  readonly error: string
}

export interface WorkOptions {
  /** Conversations at once [4]. */
  readonly concurrency?: number
  /** Stops the work. */
  readonly signal?: AbortSignal
  /** [default] */
  readonly subscription?: string
  /** How long events stay ours if this process dies [60]. While it lives, leases are extended. */
  readonly leaseS?: number
  /** How long handlers may go on after a stop [10 s]; then their events are given back. */
  readonly stopMs?: number
}

const EVENTS = '/v1/inbox/events'
const DAY_MS = 86_400_000
/** Twice the time between two heartbeats, and some more. */
const SILENCE_MS = 35_000
const MAX_LISTED = 1000

export class Intray {
  readonly #options: IntrayOptions
  readonly #http: HttpClient
  readonly #outbox: Promise<{ readonly rows: Outbox; readonly sender: Sender }> | null
  readonly #closing = new AbortController()
  readonly #underWay = new Set<Promise<unknown>>()
  #closed: Promise<OutboxCounts> | null = null

  constructor(options: IntrayOptions) {
    const { outbox, token, connectTimeoutMs = CONNECT_TIMEOUT_MS, requestTimeoutMs = REQUEST_TIMEOUT_MS } = options
    if (!outbox) throw new TypeError("outbox is missing. Name a file for it, or 'none'.")
    mustBePositive(options.concurrency ?? 1)
    this.#options = options
    this.#http = new HttpClient({ url: baseOf(options.url), token, connectTimeoutMs, requestTimeoutMs })
    this.#outbox = outbox === 'none' ? null : this.#open(outbox)
    // send() reports it as well.
    this.#outbox?.catch((error: Error) => this.#onProblem(error))
  }

  /** Resolves when the message is on disk; with outbox 'none', when the service has it. */
  async send(message: Message, options: SendOptions = {}): Promise<Sent> {
    if (this.#closing.signal.aborted) throw new Error('The client is closed.')
    const row = rowOf(message, options.traceparent ?? null)
    if (this.#outbox === null) {
      const outcome = await this.#deliver(row, this.#closing.signal)
      if (outcome.kind !== 'stored') throw outcome.error
      return { source_ref: row.source_ref, receipt: outcome.receipt }
    }
    const { rows, sender } = await this.#outbox
    await rows.add(row, this.#now())
    void sender.wake()
    return { source_ref: row.source_ref, receipt: null }
  }

  /** Sends what is due. Resolves when nothing is due any more or nothing can be sent, with what is left. */
  async flush(): Promise<OutboxCounts> {
    return this.#outbox ? (await this.#outbox).sender.flush() : NOTHING
  }

  /** The messages that the service refused, oldest first, at most 1000. */
  async refused({ afterId = 0 }: { readonly afterId?: number } = {}): Promise<readonly RefusedMessage[]> {
    if (!this.#outbox) return []
    const rows = await (await this.#outbox).rows.listRefused(afterId, MAX_LISTED)
    return rows.map(({ id, source_ref, channel_ref, created_at, body, last_error }) => {
      return {
        id,
        source_ref,
        channel_ref,
        created_at,
        body: Buffer.from(body).toString('utf8'),
        error: last_error ?? '',
      }
    })
  }

  /** Sends a refused message again, the same bytes. False if there is none with that id. */
  async resend(id: number): Promise<boolean> {
    if (!this.#outbox) return false
    const { rows, sender } = await this.#outbox
    const isThere = await rows.resend(id, this.#now())
    void sender.wake()
    return isThere
  }

  /** Processes events until the signal is aborted or the client is closed. Rejects if the service refuses the claims. */
  work(handler: Handler, options: WorkOptions = {}): Promise<void> {
    const { concurrency = 4, signal, subscription, leaseS = 60, stopMs = 10_000 } = options
    mustBePositive(concurrency)
    const worker = new Worker({
      claims: new ClaimsClient(this.#http, subscription),
      handler,
      concurrency,
      leaseS,
      stopMs,
      signal: this.#orClosing(signal),
      onProblem: (error) => this.#onProblem(error),
    })
    return this.#track(worker.run())
  }

  /** New events and revisions, in the order of their ids, without their bodies. Ends with the signal or the client. */
  follow(
    options: { readonly after?: number; readonly signal?: AbortSignal; readonly silenceMs?: number } = {},
  ): AsyncGenerator<FollowedEvent, void, void> {
    const { after, signal, silenceMs = SILENCE_MS } = options
    const onProblem = (error: Error) => this.#onProblem(error)
    return follow(this.#http, { after, signal: this.#orClosing(signal), silenceMs, onProblem })
  }

  /** Stops everything. Goes on sending what is due for at most `timeoutMs` and returns what is left. */
  close({ timeoutMs = 10_000 }: { readonly timeoutMs?: number } = {}): Promise<OutboxCounts> {
    this.#closed ??= this.#close(timeoutMs)
    return this.#closed
  }

  async #close(timeoutMs: number): Promise<OutboxCounts> {
    const time = new AbortController()
    const timeIsOver = pause(timeoutMs, time.signal)
    this.#closing.abort()
    try {
      await Promise.race([timeIsOver, Promise.allSettled(this.#underWay)])
      const opened = await this.#outbox?.catch(() => null)
      if (!opened) return NOTHING
      const { rows, sender } = opened
      await Promise.race([timeIsOver, sender.flush()])
      const left = await sender.stop()
      await rows.close()
      return left
    } finally {
      time.abort()
      this.#http.close()
    }
  }

  async #open(path: string): Promise<{ rows: Outbox; sender: Sender }> {
    const { concurrency = 8, keepSentDays = 7 } = this.#options
    const onProblem = (error: Error) => this.#onProblem(error)
    const rows = await openOutbox(path, (message) => onProblem(new Error(message)))
    const sender = new Sender({
      outbox: rows,
      deliver: (row, signal) => this.#deliver(row, signal),
      concurrency,
      keepSentMs: keepSentDays * DAY_MS,
      now: () => this.#now(),
      onProblem,
    })
    return { rows, sender }
  }

  async #deliver({ body, traceparent }: NewMessage, signal: AbortSignal): Promise<Outcome> {
    try {
      const headers = traceparent === null ? {} : { traceparent }
      return outcomeOf(await this.#http.post(EVENTS, body, { headers, signal }))
    } catch (error) {
      const isKnown = error instanceof Refused || error instanceof Unavailable
      return outcomeOfError(isKnown ? error : new Unavailable(null, 'no answer', String(error)))
    }
  }

  #now(): number {
    return this.#options.now?.() ?? Date.now()
  }

  #onProblem(error: Error): void {
    const { onProblem = (problem: Error) => console.error(`intray: ${problem.name}: ${problem.message}`) } =
      this.#options
    onProblem(error)
  }

  #orClosing(signal: AbortSignal | undefined): AbortSignal {
    return signal ? AbortSignal.any([signal, this.#closing.signal]) : this.#closing.signal
  }

  #track<T>(promise: Promise<T>): Promise<T> {
    this.#underWay.add(promise)
    const done = (): void => void this.#underWay.delete(promise)
    promise.then(done, done)
    return promise
  }
}

function mustBePositive(concurrency: number): void {
  if (!(concurrency >= 1)) throw new RangeError('concurrency is a number from 1.')
}

const NOTHING: OutboxCounts = { waiting: 0, refused: 0, oldest_at: null }

/** Also takes the address that senders post to. */
function baseOf(given: string | URL): URL {
  const url = new URL(given)
  url.pathname = url.pathname.replace(/\/(v1\/inbox\/events|api\/inbox)\/?$/, '/')
  return url
}

/** The bytes are made here, once, and never change. */
function rowOf(message: Message, traceparent: string | null): NewMessage {
  const source_ref = refOf(message.source_ref) ?? randomUUID()
  const channel_ref = refOf(message.channel_ref)
  // One that no header can hold is left out: the message matters more.
  if (traceparent !== null && !/^[\x21-\x7e]+$/.test(traceparent)) traceparent = null
  const refs = {
    source_ref: isUnusable(message.source_ref) ? message.source_ref : source_ref,
    ...(channel_ref && { channel_ref }),
  }
  return { source_ref, channel_ref, traceparent, body: Buffer.from(JSON.stringify({ ...message, ...refs })) }
}

/** As the service reads it: white space and nothing are the same, and a number stands for its digits. */
function refOf(value: unknown): string | null {
  if (Number.isSafeInteger(value)) return String(value)
  return typeof value === 'string' && value.trim() !== '' ? value : null
}

/** Left as it is: the service refuses it, and says why. */
function isUnusable(value: unknown): boolean {
  return value !== undefined && value !== null && typeof value !== 'string' && refOf(value) === null
}

// Claims events and hands them to a handler: the events of a conversation one after another, conversations side by side. An
// event is acknowledged when its handler is done and released when it failed. A stop lets the handlers finish for a while and
// gives back what is left.

import { backoffMs, pause } from './backoff.ts'
import type { ClaimsClient, Failure } from './claims-client.ts'
import { LeaseLost, Unavailable, Unrecoverable } from './errors.ts'
import { Lease } from './lease.ts'
import type { ClaimedEvent } from './schema.ts'

export interface WorkContext {
  /** Aborted when the lease is lost, or the time of a stop is over: what the handler does from then on does not count. */
  readonly signal: AbortSignal
}

export type Handler = (event: ClaimedEvent, context: WorkContext) => unknown

export interface WorkerOptions {
  readonly claims: ClaimsClient
  readonly handler: Handler
  readonly concurrency: number
  readonly leaseS: number
  /** How long handlers may go on after a stop. */
  readonly stopMs: number
  /** Aborted to stop. */
  readonly signal: AbortSignal
  readonly onProblem: (error: Error) => void
}

/** A stop waits for the claim that is under way: its events would stay leased otherwise. */
const WAIT_S = 2
const WAIT_FOR_FIX_MS = 60_000
const LONGEST_PAUSE_MS = 15_000
const MAX_ERROR_LENGTH = 1000
/** Of one claim. */
const MAX_CLAIMED = 200

export class Worker {
  readonly #options: WorkerOptions
  readonly #runs = new Map<Lease, Promise<void>>()
  /** Aborted when the time of a stop is over. */
  readonly #timeIsOver = new AbortController()
  #isStopping = false
  /** Settles when no claim is under way. */
  #claiming: Promise<unknown> = Promise.resolve()
  /** Called when a run has ended, and at a stop. */
  #onRoom: () => void = () => {}

  constructor(options: WorkerOptions) {
    this.#options = options
  }

  /** Resolves when the worker has stopped; rejects if the service refuses its claims. */
  async run(): Promise<void> {
    const { signal, stopMs } = this.#options
    let timer: NodeJS.Timeout | undefined
    const stop = (): void => {
      this.#isStopping = true
      this.#onRoom()
      timer ??= setTimeout(() => this.#endTime(), stopMs)
    }
    if (signal.aborted) return
    signal.addEventListener('abort', stop)
    try {
      await this.#claimUntilStopped()
    } finally {
      // Also after an error: what is under way is finished or given back.
      stop()
      while (this.#runs.size > 0) await Promise.all(this.#runs.values())
      clearTimeout(timer)
      signal.removeEventListener('abort', stop)
    }
  }

  #endTime(): void {
    this.#timeIsOver.abort()
    for (const lease of this.#runs.keys()) lease.outOfTime()
  }

  async #claimUntilStopped(): Promise<void> {
    const { concurrency, signal, onProblem } = this.#options
    let failures = 0
    let hasToldOfFix = false
    while (!this.#isStopping) {
      if (this.#runs.size >= concurrency) {
        await new Promise<void>((resolve) => (this.#onRoom = resolve))
        continue
      }
      try {
        await this.#claim(concurrency - this.#runs.size)
        failures = 0
        hasToldOfFix = false
      } catch (error) {
        if (!(error instanceof Unavailable)) throw error
        if (this.#isStopping) return
        failures += 1
        if (error.needsFix && !hasToldOfFix) onProblem(error)
        hasToldOfFix = error.needsFix
        await pause(
          error.needsFix ? WAIT_FOR_FIX_MS : backoffMs(failures, error.retryAfterMs, LONGEST_PAUSE_MS),
          signal,
        )
      }
    }
  }

  async #claim(limit: number): Promise<void> {
    const { claims, leaseS } = this.#options
    const claimedAt = performance.now()
    const command = { limit: Math.min(limit, MAX_CLAIMED), lease_s: leaseS, wait_s: WAIT_S }
    const claimed = claims.claim(command, this.#timeIsOver.signal)
    this.#claiming = claimed.catch(() => {})
    const events = await claimed
    for (const run of runsOf(events)) {
      const lease = new Lease(claims, leaseS, run[0]!, claimedAt)
      const ended = this.#work(run, lease).then(() => {
        this.#runs.delete(lease)
        this.#onRoom()
      })
      this.#runs.set(lease, ended)
    }
  }

  /** The events of one conversation, in order. Never rejects. */
  async #work(run: readonly ClaimedEvent[], lease: Lease): Promise<void> {
    try {
      for (const event of run) {
        lease.event = event
        // With it, those behind it are given back.
        if (this.#isStopping) return await this.#release(event, lease, null)
        if (!(await this.#handle(event, lease))) return
      }
    } catch (error) {
      this.#options.onProblem(error as Error)
    } finally {
      lease.end()
    }
  }

  /** False if the rest of the run has to wait. */
  async #handle(event: ClaimedEvent, lease: Lease): Promise<boolean> {
    const { handler, claims } = this.#options
    const handled = (async () => handler(event, { signal: lease.over }))().then(
      () => ({ failure: null }),
      (error: unknown) => ({ failure: { error: textOf(error), dead: error instanceof Unrecoverable } }),
    )
    // A handler whose lease is lost keeps its place until it ends; one that has no more time is left alone.
    const result = await this.#orOutOfTime(handled)
    if (lease.lost.aborted) throw new LeaseLost(event.id)
    if (result?.failure === null) {
      await this.#settle(event, lease, () => claims.ack(event, lease.lost))
      return true
    }
    await this.#release(event, lease, this.#timeIsOver.signal.aborted ? null : (result?.failure ?? null))
    return false
  }

  /** Null if the time of a stop is over first. */
  async #orOutOfTime<T>(promise: Promise<T>): Promise<T | null> {
    const { signal } = this.#timeIsOver
    let end = (): void => {}
    const over = new Promise<null>((resolve) => {
      end = () => resolve(null)
      if (signal.aborted) end()
      else signal.addEventListener('abort', end)
    })
    try {
      return await Promise.race([promise, over])
    } finally {
      signal.removeEventListener('abort', end)
    }
  }

  async #release(event: ClaimedEvent, lease: Lease, failure: Failure | null): Promise<void> {
    // A claim of ours that still waits would get what is given back.
    if (this.#isStopping) await this.#claiming
    await this.#settle(event, lease, () => this.#options.claims.release(event, failure, lease.lost))
  }

  /** Tries until the service has answered or the lease is lost, which throws. When the time is over, one try is left. */
  async #settle(event: ClaimedEvent, lease: Lease, call: () => Promise<boolean>): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      try {
        if (await call()) return
        throw new LeaseLost(event.id)
      } catch (error) {
        if (lease.lost.aborted) throw new LeaseLost(event.id)
        if (!(error instanceof Unavailable) || this.#timeIsOver.signal.aborted) throw error
        await pause(backoffMs(tries, error.retryAfterMs, LONGEST_PAUSE_MS), lease.over)
      }
    }
  }
}

/** As the service takes it: no half characters, no U+0000. */
function textOf(error: unknown): string {
  const text = Buffer.from(String(error).slice(0, MAX_ERROR_LENGTH)).toString('utf8').replaceAll('\0', ' ')
  return text || 'failed'
}

/** Consecutive events of one conversation; an event without one is a run of its own. */
function runsOf(events: readonly ClaimedEvent[]): ClaimedEvent[][] {
  const runs = new Map<string, ClaimedEvent[]>()
  for (const event of events) {
    const key = event.conversation_id === null ? `e${event.id}` : `c${event.conversation_id}`
    const run = runs.get(key)
    if (run) run.push(event)
    else runs.set(key, [event])
  }
  return [...runs.values()]
}

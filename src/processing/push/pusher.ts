// Delivers the events of one subscription to its endpoint. It claims as a processor does, in order: the events of a conversation go
// one after the other, several conversations at the same time.
//
//   claim ─► runs, one for each conversation ─► request ─► 2xx: ack
//                                                       └► else: release with the error, and with it the rest of the run
//
// A lease is longer than a request may take, and extended while its run waits or is under way. What is not sent, because the circuit
// opened or the service stops, is given back without an attempt.

import type { Circuit, Endpoint, EndpointTarget, PushAttempt } from '../../model/endpoint.ts'
import type { ReleaseItem } from '../../model/processing-plan.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Tracing } from '../../runtime/tracing.ts'
import type { ClaimedEvent } from '../../store/contract/processing.ts'
import type { Claims, Processor } from '../claims.ts'
import { AckBuffer } from './ack-buffer.ts'
import { CircuitBreaker } from './circuit-breaker.ts'
import { ClaimPace } from './claim-pace.ts'
import { messageOf, NO_PAYLOAD, requestOf } from './delivery.ts'
import type { HttpClient, PushResult } from './http-client.ts'
import { RunQueue, type Run } from './run-queue.ts'
import { secretTexts } from './target.ts'
import { type Verdict, verdictOf } from './verdict.ts'

/** Payloads of one claim: an endpoint holds at most two claims in memory. One larger event comes alone. */
const CLAIM_BYTES = 1024 * 1024
/** A claim that waits for events begins anew after this. */
const CLAIM_WAIT_MS = 60_000
/** Between a claim that found few events and the next one: more of them then come together, in one transaction. */
const CLAIM_GAP_MS = 100
/** After a failure of the store. */
const TROUBLE_MS = 1000
/** A withheld endpoint is looked at again at least this often, since another node may have closed its circuit. */
const MAX_PAUSE_MS = 1000
/** What a lease has beyond the time limit of a request, at least: for storing the outcome. */
const MIN_LEASE_MARGIN_MS = 5000

export interface PusherOptions {
  readonly endpoint: Endpoint
  readonly target: EndpointTarget
  readonly claims: Claims
  readonly client: HttpClient
  /** Runs a request when this node has room for it. */
  readonly inSlot: <T>(work: () => Promise<T>) => Promise<T>
  readonly clock: Clock
  readonly tracing: Tracing | null
  /** Messages that wait for a commit now. */
  readonly waiting: () => number
  readonly onAttempt: (attempt: PushAttempt) => void
  /** Stores the state. */
  readonly onCircuit: (circuit: Circuit, error: string | null) => Promise<void>
  /** The endpoint answered that it is gone. */
  readonly onGone: (error: string) => void
  readonly onTrouble: (doing: string, error: unknown) => void
}

export class Pusher {
  readonly #options: PusherOptions
  readonly #processor: Processor
  readonly #breaker: CircuitBreaker
  readonly #acks: AckBuffer
  readonly #runs: RunQueue
  readonly #pace: ClaimPace
  readonly #secrets: readonly string[]
  readonly #leaseMs: number
  readonly #ended = new AbortController()
  /** Of the claim that waits for events. */
  #claiming = new AbortController()
  #storing = 0
  #loop: Promise<void> = Promise.resolve()
  #extender: NodeJS.Timeout | undefined

  constructor(options: PusherOptions) {
    const { endpoint, target, claims, onTrouble } = options
    const { accountId, companyId, id, subscription, timeoutMs, concurrency } = endpoint
    this.#options = options
    this.#processor = { accountId, companyId, keyId: `ep_${id}` }
    this.#breaker = new CircuitBreaker(endpoint.circuit)
    this.#acks = new AckBuffer({ ack: (items) => claims.ack(this.#processor, subscription, items), onTrouble })
    this.#runs = new RunQueue(concurrency, (run) => this.#deliverRun(run))
    this.#pace = new ClaimPace(concurrency)
    this.#secrets = secretTexts(target)
    this.#leaseMs = timeoutMs + Math.max(MIN_LEASE_MARGIN_MS, timeoutMs / 2)
  }

  start(): void {
    this.#loop = this.#claimAll()
    // Three times in a lease: one extension may fail.
    this.#extender = setInterval(() => void this.#extend(), this.#leaseMs / 3)
    this.#extender.unref()
  }

  /** As another node stored it. */
  setCircuit(circuit: Circuit): void {
    if (this.#storing === 0) this.#breaker.set(circuit)
  }

  /** Begins nothing any more; requests under way may go on for this long. */
  async stop(graceMs: number): Promise<void> {
    this.#ended.abort()
    this.#claiming.abort()
    void this.#giveBackWaiting()
    const timer = setTimeout(() => this.#options.client.stop(), graceMs)
    await this.#loop
    await this.#runs.idle()
    clearTimeout(timer)
    clearInterval(this.#extender)
    await this.#acks.settled()
    this.#options.client.stop()
  }

  async #claimAll(): Promise<void> {
    const { endpoint, claims, clock, onTrouble } = this.#options
    while (!this.#ended.signal.aborted) {
      const waitMs = this.#breaker.waitMs(clock.now())
      if (waitMs > 0) {
        await this.#pause(Math.min(waitMs, MAX_PAUSE_MS))
        continue
      }
      await this.#runs.hasRoom()
      const pauseMs = this.#pace.usedUp(this.#options.waiting() > 0)
      if (pauseMs > 0) await this.#pause(pauseMs)
      const isProbe = this.#breaker.isOpen
      if (isProbe) await this.#runs.idle()
      if (this.#ended.signal.aborted) return
      const limit = isProbe ? 1 : this.#pace.limit
      const command = { limit, leaseMs: this.#leaseMs, waitMs: CLAIM_WAIT_MS, ordered: true, channelRef: null }
      this.#claiming = new AbortController()
      try {
        const claimed = await claims.claim(
          this.#processor,
          { ...command, subscription: endpoint.subscription, maxBytes: CLAIM_BYTES },
          this.#claiming.signal,
        )
        // The subscription is gone, and its endpoint with it.
        if (claimed === null) return
        this.#runs.add(claimed)
        if (isProbe) await this.#runs.idle()
        else this.#pace.claimed(claimed.length)
        if (claimed.length < limit) await this.#pause(CLAIM_GAP_MS)
      } catch (error) {
        onTrouble(`claim events for endpoint ${endpoint.id}`, error)
        await this.#pause(TROUBLE_MS)
      }
    }
  }

  async #deliverRun(run: Run): Promise<void> {
    const { clock, inSlot, onTrouble } = this.#options
    for (let claimed = run.current; claimed; claimed = run.current) {
      const one = claimed
      // The lease was lost: another process delivers the rest.
      if (run.leaseUntil <= clock.now()) return
      if (this.#ended.signal.aborted || !this.#breaker.begin(clock.now())) return this.#giveBack([one], WITHDRAWN)
      const verdict = await inSlot(() => this.#deliver(one)).catch((error: unknown) => {
        onTrouble(`deliver event ${one.event.id}`, error)
        return NOT_MADE
      })
      this.#breaker.ended()
      if (verdict.what !== 'delivered') return this.#giveBack([one], verdict)
      run.advance()
      this.#acks.add({ id: one.event.id, leaseId: one.leaseId })
    }
  }

  async #deliver(claimed: ClaimedEvent): Promise<Verdict> {
    const { endpoint, target, client, clock, tracing } = this.#options
    if (this.#ended.signal.aborted) return WITHDRAWN
    const message = messageOf(claimed, endpoint)
    if (message === null) return { what: 'failed', error: NO_PAYLOAD, waitMs: null, isGone: false }
    const span = tracing?.pushBegan(claimed.event)
    const traceparent = span?.traceparent ?? claimed.event.traceparent
    const request = await requestOf(message, target, endpoint.timeoutMs, clock.now(), traceparent)
    const result = await client.post(request)
    span?.end('status' in result ? result.status : result.failure)
    const verdict = verdictOf(result, this.#secrets, clock.now())
    if (verdict.what !== 'withdrawn') this.#note(claimed, result, verdict)
    return verdict
  }

  #note({ event, attempts }: ClaimedEvent, result: PushResult, verdict: Verdict): void {
    const { clock, onAttempt, onGone } = this.#options
    const now = clock.now()
    const status = 'status' in result ? result.status : null
    const failure = 'failure' in result ? result.failure : verdict.what === 'failed' ? `http_${result.status}` : null
    onAttempt({ at: now, eventId: event.id, attempt: attempts, status, failure, ms: Math.round(result.ms) })
    if (verdict.what === 'failed' && verdict.waitMs !== null) this.#breaker.quiet(now + verdict.waitMs)
    if (verdict.what === 'failed' && verdict.isGone) onGone(verdict.error)
    const changed = verdict.what === 'delivered' ? this.#breaker.succeeded() : this.#breaker.failed(now)
    if (changed) void this.#store(changed, failure)
    // What would be claimed now would be given back.
    if (this.#breaker.waitMs(now) > 0) this.#claiming.abort()
  }

  async #store(circuit: Circuit, error: string | null): Promise<void> {
    this.#storing += 1
    if (circuit.openedAt !== null) void this.#giveBackWaiting()
    await this.#options.onCircuit(circuit, error)
    this.#storing -= 1
  }

  #giveBackWaiting(): Promise<void> {
    return this.#giveBack(
      this.#runs.takeWaiting().map(({ current }) => current!),
      WITHDRAWN,
    )
  }

  /** Of each run one event: those behind it are given back with it. */
  async #giveBack(events: readonly ClaimedEvent[], verdict: Verdict): Promise<void> {
    const { claims, endpoint, onTrouble } = this.#options
    if (events.length === 0) return
    const items = events.map(({ event, leaseId }): ReleaseItem => {
      const item = { id: event.id, leaseId }
      if (verdict.what !== 'failed') return { ...item, delayMs: 0, error: null }
      // A short Retry-After, repeated, would use up all attempts in seconds: the delays of the subscription count too.
      const minDelayMs = verdict.waitMs ?? 0
      return { ...item, delayMs: null, minDelayMs, error: verdict.error, isDead: verdict.error === NO_PAYLOAD }
    })
    try {
      await claims.release(this.#processor, endpoint.subscription, items)
    } catch (error) {
      // Their leases expire, which counts an attempt: what may have been done must not be repeated for ever.
      onTrouble(`release pushed events`, error)
    }
  }

  async #extend(): Promise<void> {
    const { claims, clock, endpoint, onTrouble } = this.#options
    const runs = this.#runs.all()
    if (runs.length === 0) return
    const items = runs.map(({ current }) => ({ id: current!.event.id, leaseId: current!.leaseId }))
    const until = clock.now() + this.#leaseMs
    try {
      const settled = await claims.extend(this.#processor, endpoint.subscription, items, this.#leaseMs)
      for (const [n, one] of (settled ?? []).entries()) if (one.ok) runs[n]!.leaseUntil = until
    } catch (error) {
      onTrouble(`extend the leases of endpoint ${endpoint.id}`, error)
    }
  }

  #pause(ms: number): Promise<void> {
    const { signal } = this.#ended
    return new Promise((resolve) => {
      if (signal.aborted) return resolve()
      const end = () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', end)
        resolve()
      }
      const timer = setTimeout(end, ms)
      signal.addEventListener('abort', end)
    })
  }
}

const WITHDRAWN: Verdict = { what: 'withdrawn' }
const NOT_MADE: Verdict = { what: 'failed', error: 'The request could not be made.', waitMs: null, isGone: false }

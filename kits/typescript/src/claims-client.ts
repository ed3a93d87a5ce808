// The calls of a processor: claim, acknowledge, extend, release.

import { resultOf } from './answers.ts'
import type { HttpClient } from './http-client.ts'
import type { ClaimCommand, ClaimedEvent, ClaimedEvents, SettledEvent } from './schema.ts'

/** The payloads of an answer are at most 8 MiB, but for one event that is larger; base64 makes them a third longer. */
const MAX_CLAIM_BYTES = 160 * 1024 * 1024

export interface LeasedEvent {
  readonly id: number
  readonly lease_id: string
}

export interface Failure {
  readonly error: string
  /** No attempt will succeed. */
  readonly dead: boolean
}

export class ClaimsClient {
  readonly #http: HttpClient
  readonly #subscription: { readonly subscription?: string }

  constructor(http: HttpClient, subscription: string | undefined) {
    this.#http = http
    this.#subscription = subscription === undefined ? {} : { subscription }
  }

  async claim(command: ClaimCommand, signal: AbortSignal): Promise<readonly ClaimedEvent[]> {
    const body = bodyOf({ ...command, ...this.#subscription })
    const extraMs = 1000 * (command.wait_s ?? 0)
    const answer = await this.#http.post('/v1/inbox/claims', body, { signal, extraMs, maxAnswerBytes: MAX_CLAIM_BYTES })
    return resultOf<ClaimedEvents>(answer).events
  }

  /** Each of these is false if the lease was lost. */
  ack(event: LeasedEvent, signal?: AbortSignal): Promise<boolean> {
    return this.#settle('ack', event, {}, signal)
  }

  extend(event: LeasedEvent, leaseS: number, signal?: AbortSignal): Promise<boolean> {
    return this.#settle('extend', event, { lease_s: leaseS }, signal)
  }

  /** Without a failure it is given back at once, as if it had not been tried. */
  release(event: LeasedEvent, failure: Failure | null, signal?: AbortSignal): Promise<boolean> {
    return this.#settle('release', event, failure ?? { delay_s: 0 }, signal)
  }

  async #settle(call: string, { id, lease_id }: LeasedEvent, more: object, signal?: AbortSignal): Promise<boolean> {
    // As a list: then a lost lease is an outcome, not an error.
    const body = bodyOf({ events: [{ id, lease_id }], ...more, ...this.#subscription })
    const answer = await this.#http.post(`/v1/inbox/claims/${call}`, body, { signal })
    const { events } = resultOf<{ readonly events: readonly SettledEvent[] }>(answer)
    return events[0]?.ok === true
  }
}

function bodyOf(command: object): Uint8Array {
  return Buffer.from(JSON.stringify(command))
}

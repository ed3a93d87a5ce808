// Posts messages to a service and reports the outcome of each. Retries what may succeed later, with the same bytes and the
// same Idempotency-Key, so that a retry cannot store a second copy; waits as long as Retry-After says.

import { setTimeout as pause } from 'node:timers/promises'
import { outcomeOf } from '../../kits/typescript/src/answers.ts'
import { type FieldProblem, Refused, Unavailable } from '../../kits/typescript/src/errors.ts'
import { HttpClient } from '../../kits/typescript/src/http-client.ts'
import type { Receipt } from '../../kits/typescript/src/schema.ts'

export type SendResult = { readonly outcome: 'stored' | 'duplicate' | 'conflict'; readonly id: number } | Unsent

export interface Unsent {
  /** `refused`: for its content. `failed`: after the last try. `fatal`: for a reason that applies to every message. */
  readonly outcome: 'refused' | 'failed' | 'fatal'
  readonly status: number | null
  readonly error: string
  readonly message: string
  /** The fields that cannot be used, as the answer lists them. */
  readonly fields?: readonly FieldProblem[]
}

export interface SendClientOptions {
  readonly url: URL
  readonly token: string
  readonly concurrency: number
  readonly maxTries: number
}

/** Long enough for the largest message over a slow line. */
const REQUEST_TIMEOUT_MS = 120_000
const LONGEST_PAUSE_MS = 60_000
/** Refused for the address, which all messages share. */
const WRONG_ADDRESS = new Set([404, 405])

export class SendClient {
  readonly #http: HttpClient
  readonly #path: string
  readonly #maxTries: number

  constructor({ url, token, concurrency, maxTries }: SendClientOptions) {
    this.#http = new HttpClient({
      url: new URL('/', url),
      token,
      requestTimeoutMs: REQUEST_TIMEOUT_MS,
      maxConnections: concurrency,
      userAgent: 'intray-send',
    })
    this.#path = `${url.pathname}${url.search}`
    this.#maxTries = maxTries
  }

  close(): void {
    this.#http.close()
  }

  async send(bytes: Buffer, idempotencyKey: string): Promise<SendResult> {
    for (let tries = 1; ; tries += 1) {
      const outcome = await this.#post(bytes, idempotencyKey)
      if (!(outcome instanceof Error)) return storedAs(outcome)
      const result = unsent(outcome)
      if (result.outcome !== 'failed' || tries >= this.#maxTries) return result
      await pause(pauseMs(tries, outcome instanceof Unavailable ? outcome.retryAfterMs : null))
    }
  }

  async #post(bytes: Buffer, idempotencyKey: string): Promise<Receipt | Refused | Unavailable> {
    try {
      const answer = await this.#http.post(this.#path, bytes, { headers: { 'Idempotency-Key': idempotencyKey } })
      const outcome = outcomeOf(answer)
      return outcome.kind === 'stored' ? outcome.receipt : outcome.error
    } catch (error) {
      if (error instanceof Unavailable) return error
      throw error
    }
  }
}

function storedAs({ id, duplicate, conflict }: Receipt): SendResult {
  return { outcome: conflict ? 'conflict' : duplicate ? 'duplicate' : 'stored', id }
}

/** A trusted certificate for another name has a message of its own. */
const WRONG_NAME = 'ERR_TLS_CERT_ALTNAME_INVALID'
const UNTRUSTED = new Set([
  'CERT_HAS_EXPIRED',
  'CERT_NOT_YET_VALID',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
])

function unsent(error: Refused | Unavailable): Unsent {
  const { status, code } = error
  const isUntrusted = UNTRUSTED.has(code)
  const hint = isUntrusted
    ? '. For an authority of your own: NODE_EXTRA_CA_CERTS=FILE with its certificate, in PEM.'
    : ''
  const message = `${error.message}${hint}`
  if (isUntrusted || code === WRONG_NAME) return { outcome: 'fatal', status, error: code, message }
  const fields = error instanceof Refused && error.fields.length > 0 ? { fields: error.fields } : {}
  return { outcome: outcomeOfFailure(error), status, error: code, message, ...fields }
}

function outcomeOfFailure(error: Refused | Unavailable): Unsent['outcome'] {
  if (error instanceof Unavailable) return error.needsFix ? 'fatal' : 'failed'
  return WRONG_ADDRESS.has(error.status) ? 'fatal' : 'refused'
}

/** Retry-After, else exponential back-off from 0.2 s. With jitter, at most about a minute. */
function pauseMs(tries: number, retryAfterMs: number | null): number {
  const wanted = retryAfterMs ?? 200 * 2 ** (tries - 1)
  return Math.min(LONGEST_PAUSE_MS, wanted * (1 + Math.random() / 4))
}

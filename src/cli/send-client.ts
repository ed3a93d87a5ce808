// Posts messages to a service and reports the outcome of each. Retries what may succeed later, with the same bytes and the
// same Idempotency-Key, so that a retry cannot store a second copy; waits as long as Retry-After says.

import http from 'node:http'
import https from 'node:https'
import { setTimeout as pause } from 'node:timers/promises'

export type SendResult = { readonly outcome: 'stored' | 'duplicate' | 'conflict'; readonly id: number } | Unsent

export interface Unsent {
  /** `refused`: for its content. `failed`: after the last try. `fatal`: for a reason that applies to every message. */
  readonly outcome: 'refused' | 'failed' | 'fatal'
  readonly status: number | null
  readonly error: string
  readonly message: string
  /** The fields that cannot be used, as the answer lists them. */
  readonly fields?: readonly RefusedField[]
}

export interface RefusedField {
  readonly path: string
  readonly message: string
}

export interface SendClientOptions {
  readonly url: URL
  readonly token: string
  readonly concurrency: number
  readonly maxTries: number
}

interface Received {
  readonly status: number
  readonly retryAfter: string | undefined
  readonly challenge: string | undefined
  readonly body: Record<string, unknown>
}

const SILENCE_MS = 60_000
const LONGEST_PAUSE_MS = 60_000
const MAX_ANSWER_BYTES = 65_536
/** Refused for the token or the address, which all messages share. */
const FATAL = new Set([401, 403, 404, 405])
const RETRYABLE = new Set([408, 429, 500, 502, 503, 504])

export class SendClient {
  readonly #options: SendClientOptions
  readonly #agent: http.Agent
  readonly #request: typeof http.request

  constructor(options: SendClientOptions) {
    this.#options = options
    const isSecure = options.url.protocol === 'https:'
    const agentOptions = { keepAlive: true, maxSockets: options.concurrency }
    this.#agent = isSecure ? new https.Agent(agentOptions) : new http.Agent(agentOptions)
    this.#request = isSecure ? https.request : http.request
  }

  close(): void {
    this.#agent.destroy()
  }

  async send(bytes: Buffer, idempotencyKey: string): Promise<SendResult> {
    for (let tries = 1; ; tries += 1) {
      const found = await this.#post(bytes, idempotencyKey)
      const result = found instanceof Error ? unanswered(found) : resultOf(found)
      if (result.outcome !== 'failed' || tries >= this.#options.maxTries) return result
      await pause(pauseMs(tries, found instanceof Error ? undefined : found.retryAfter))
    }
  }

  #post(bytes: Buffer, idempotencyKey: string): Promise<Received | Error> {
    const { url, token } = this.#options
    return new Promise((resolve) => {
      const req = this.#request(url, {
        method: 'POST',
        agent: this.#agent,
        headers: {
          Authorization: `Bearer ${token}`,
          'Content-Type': 'application/json',
          'Content-Length': bytes.length,
          'Idempotency-Key': idempotencyKey,
          'User-Agent': 'intray-send',
        },
      })
      req.setTimeout(SILENCE_MS, () => req.destroy(new Error(`no answer within ${SILENCE_MS / 1000} seconds`)))
      req.on('error', resolve)
      req.on('response', (response) => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (chunk: string) => {
          if (text.length < MAX_ANSWER_BYTES) text += chunk
        })
        response.on('error', resolve)
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            retryAfter: response.headers['retry-after'],
            challenge: response.headers['www-authenticate'],
            body: parseObject(text),
          }),
        )
      })
      req.end(bytes)
    })
  }
}

function resultOf({ status, challenge, body }: Received): SendResult {
  if (status === 200 && body.ok === true && typeof body.id === 'number') {
    const outcome = body.conflict === true ? 'conflict' : body.duplicate === true ? 'duplicate' : 'stored'
    return { outcome, id: body.id }
  }
  const error = typeof body.error === 'string' ? body.error : `status ${status}`
  const message = typeof body.message === 'string' ? body.message : explained(error, challenge)
  const isRetryable = typeof body.retryable === 'boolean' ? body.retryable : RETRYABLE.has(status)
  const outcome = FATAL.has(status) ? 'fatal' : isRetryable ? 'failed' : 'refused'
  const fields = Array.isArray(body.fields) ? body.fields.filter(isRefusedField) : []
  return { outcome, status, error, message, ...(fields.length > 0 ? { fields } : {}) }
}

function isRefusedField(field: unknown): field is RefusedField {
  const { path, message } = (field ?? {}) as Partial<RefusedField>
  return typeof path === 'string' && typeof message === 'string'
}

/** For a 403, whose sentence is in WWW-Authenticate, and for answers of a proxy. */
function explained(error: string, challenge = ''): string {
  const [, description] = /error_description="([^"]*)"/.exec(challenge) ?? []
  if (error !== 'forbidden_scope') return 'This is not an answer of Intray. Check the URL.'
  return description ?? 'The scope of this token may not send messages. Use a token with another scope.'
}

function unanswered(error: Error): SendResult {
  return {
    outcome: 'failed',
    status: null,
    error: (error as NodeJS.ErrnoException).code ?? 'no answer',
    message: error.message,
  }
}

/** Retry-After, else exponential back-off from 0.2 s. With jitter, at most about a minute. */
function pauseMs(tries: number, retryAfter: string | undefined): number {
  const asked = retryAfter === undefined ? Number.NaN : 1000 * Number(retryAfter)
  const wanted = Number.isFinite(asked) && asked >= 0 ? asked : 200 * 2 ** (tries - 1)
  return Math.min(LONGEST_PAUSE_MS, wanted * (1 + Math.random() / 4))
}

function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

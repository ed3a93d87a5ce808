// What a request to an endpoint means for its event and for the endpoint.

import { redactBeginning } from '../../runtime/redact.ts'
import { MAX_ANSWER_BYTES, type PushResult } from './http-client.ts'

/** Longer waits that a receiver asks for are cut to this: it would look forgotten. */
const MAX_RETRY_AFTER_MS = 3_600_000
/** A shorter piece of a secret at the end of a cut text is no secret. */
const MIN_SECRET_PIECE = 8

export type Verdict =
  | { readonly what: 'delivered' }
  /** The request was not made, or broken off by the service: it counts no attempt. */
  | { readonly what: 'withdrawn' }
  | {
      readonly what: 'failed'
      readonly error: string
      /** How long the endpoint asks to be left alone; null: it does not. */
      readonly waitMs: number | null
      /** The endpoint asks for no further deliveries. */
      readonly isGone: boolean
    }

/** `secrets`: texts that an answer may repeat and that must not be kept. */
export function verdictOf(result: PushResult, secrets: readonly string[], now: number): Verdict {
  if ('failure' in result) {
    if (result.failure === 'stopped') return { what: 'withdrawn' }
    return { what: 'failed', error: result.reason, waitMs: null, isGone: false }
  }
  const { status, retryAfter } = result
  if (status >= 200 && status < 300) return { what: 'delivered' }
  const asksToWait = status === 429 || status === 503
  return {
    what: 'failed',
    error: answerText(status, result.body, secrets),
    waitMs: asksToWait ? retryAfterMs(retryAfter, now) : null,
    isGone: status === 410,
  }
}

/** Text only, cut, and without anything that looks like a secret. */
export function answerText(status: number, body: Buffer, secrets: readonly string[]): string {
  const text = keptText(body, secrets)
  return text === '' ? `HTTP ${status}` : `HTTP ${status}: ${text}`
}

export function keptText(body: Buffer, secrets: readonly string[]): string {
  // A character that is cut in two would be a replacement character.
  const whole = body
    .toString('utf8')
    .replaceAll('\0', '\uFFFD')
    .replace(/\uFFFD+$/, '')
    .trim()
  return redactBeginning(withoutSecrets(whole, secrets), MAX_ANSWER_BYTES)
}

function withoutSecrets(text: string, secrets: readonly string[]): string {
  let kept = text
  for (const secret of secrets) {
    kept = kept.replaceAll(secret, '[redacted]')
    // At the cut a secret may be there in part.
    for (let length = Math.min(secret.length - 1, kept.length); length >= MIN_SECRET_PIECE; length--) {
      if (!kept.endsWith(secret.slice(0, length))) continue
      kept = `${kept.slice(0, -length)}[redacted]`
      break
    }
  }
  return kept
}

/** Seconds or a date. Null if absent or neither. */
export function retryAfterMs(text: string | null, now: number): number | null {
  if (text === null) return null
  const given = text.trim()
  const at = /^[A-Z][a-z]{2},? /.test(given) ? Date.parse(given) : Number.NaN
  const ms = /^\d{1,9}$/.test(given) ? 1000 * Number(given) : at - now
  return Number.isNaN(ms) ? null : Math.min(MAX_RETRY_AFTER_MS, Math.max(0, ms))
}

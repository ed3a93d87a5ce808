// What an answer of the service means: stored, retry, wait for a fix, or refused. The same rules hold for all sender kits
// (docs/sending/guide.md).

import { type FieldProblem, Refused, Unavailable } from './errors.ts'
import type { Receipt } from './schema.ts'

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly text: string
}

export type Outcome =
  | { readonly kind: 'stored'; readonly receipt: Receipt }
  /** `retry`: later. `wait`: for a new token or address, which holds for every message. */
  | { readonly kind: 'retry' | 'wait'; readonly error: Unavailable }
  | { readonly kind: 'refused'; readonly error: Refused }

/** However long Retry-After asks for. */
export const MAX_RETRY_AFTER_MS = 3_600_000

/** For an answer to a message. Only the service's own receipt counts as stored. */
export function outcomeOf(answer: Answer): Outcome {
  const receipt = parseObject(answer.text)
  if (answer.status === 200 && receipt.ok === true && Number.isSafeInteger(receipt.id)) {
    return { kind: 'stored', receipt: receipt as unknown as Receipt }
  }
  return outcomeOfError(errorOf(answer))
}

export function outcomeOfError(error: Refused | Unavailable): Outcome {
  if (error instanceof Refused) return { kind: 'refused', error }
  return { kind: error.needsFix ? 'wait' : 'retry', error }
}

/** The JSON of a 200 answer of the service; throws for any other. */
export function resultOf<T>(answer: Answer): T {
  const body = parseObject(answer.text)
  if (answer.status === 200 && body.ok === true) return body as T
  throw errorOf(answer)
}

export function errorOf(answer: Answer): Refused | Unavailable {
  const { status } = answer
  const body = parseObject(answer.text)
  const code = typeof body.error === 'string' ? body.error : `status ${status}`
  const message = typeof body.message === 'string' ? body.message : explained(answer, code)
  if (status < 300) return new Unavailable(status, 'no_receipt', NOT_THE_SERVICE)
  if (status >= 300 && status < 400) return new Unavailable(status, 'redirect', redirected(answer), { needsFix: true })
  if (status === 401 || status === 403) return new Unavailable(status, code, message, { needsFix: true })
  if (status === 408 || status === 429 || status >= 500) {
    return new Unavailable(status, code, message, { retryAfterMs: retryAfterMs(answer) })
  }
  const fields = Array.isArray(body.fields) ? body.fields.filter(isFieldProblem) : []
  return new Refused(status, code, message, { fields, requestId: headerOf(answer, 'x-request-id') })
}

const NOT_THE_SERVICE = 'This is not an answer of Intray. Check the URL, and what stands between.'

/** For a 403, whose sentence is in WWW-Authenticate, and for answers of something in between. */
function explained(answer: Answer, code: string): string {
  if (code !== 'forbidden_scope') return NOT_THE_SERVICE
  const [, description] = /error_description="([^"]*)"/.exec(headerOf(answer, 'www-authenticate') ?? '') ?? []
  return description ?? 'The scope of this token does not allow this. Use a token with another scope.'
}

function redirected(answer: Answer): string {
  const target = URL.parse?.(headerOf(answer, 'location') ?? '')?.origin
  return `The address answers with a redirect${target ? ` to ${target}` : ''}, which is not followed with a token. Set the URL of the service itself.`
}

/** Seconds or a date; capped. */
function retryAfterMs(answer: Answer): number | null {
  const text = headerOf(answer, 'retry-after')
  if (text === null) return null
  const wanted = /^\d+$/.test(text) ? 1000 * Number(text) : Date.parse(text) - Date.now()
  return Number.isNaN(wanted) ? null : Math.min(MAX_RETRY_AFTER_MS, Math.max(0, wanted))
}

function headerOf(answer: Answer, name: string): string | null {
  const value = answer.headers[name]
  return typeof value === 'string' ? value : null
}

function isFieldProblem(field: unknown): field is FieldProblem {
  const { path, message } = (field ?? {}) as Partial<FieldProblem>
  return typeof path === 'string' && typeof message === 'string'
}

function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

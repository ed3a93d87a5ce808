// Holds what came back against what had to come: every way in which an answer can be wrong is a sentence here.

import type { Expected, HostileCase } from './hostile-case.ts'
import { headerOf, type Observed, saysClose, type WireAnswer } from './wire.ts'

/** Every header an answer may carry. Any other slipped in. */
const KNOWN_HEADERS: ReadonlySet<string> = new Set([
  ...['x-request-id', 'content-length', 'content-type', 'cache-control', 'referrer-policy', 'www-authenticate'],
  ...[
    'retry-after',
    'accept-encoding',
    'allow',
    'connection',
    'keep-alive',
    'date',
    'idempotent-replayed',
    'intray-warnings',
    'deprecation',
    'vary',
  ],
  ...[
    'etag',
    'content-security-policy',
    'cross-origin-resource-policy',
    'x-content-type-options',
    'content-disposition',
  ],
  ...['ratelimit', 'ratelimit-policy'],
])

export function violations(item: HostileCase, observed: Observed): string[] {
  const found: string[] = []
  const { answers, probe, isHanging, garbled } = observed
  if (garbled !== null) found.push(`the answer is not HTTP: ${JSON.stringify(garbled.slice(0, 300))}`)
  if (isHanging) found.push('it hangs')
  const statuses = answers.map(({ status }) => status).join(', ')
  const further = answers.slice(item.answers.length).map(({ status }) => status)
  const isBrokenOnly = item.mayAddBroken === true && further.join() === '400'
  // What was asked for at last is answered with just this; anything else answers something else.
  if (probe && probe.body !== '{"ok":true}' && probe.status !== 400) further.push(probe.status)
  if (further.length > 0 && !isBrokenOnly) found.push(`a second message out of one: answered ${statuses}`)
  if (answers.length < item.answers.length) {
    found.push(`${answers.length} of ${item.answers.length} answers: ${statuses || 'none'}`)
  }
  for (const [n, expected] of item.answers.entries()) {
    const answer = answers[n]
    if (answer) found.push(...statusViolations(expected, answer), ...shapeViolations(expected, answer))
    const wrong = answer?.status === 200 ? item.check?.(answer.body) : null
    if (wrong) found.push(wrong)
  }
  const last = answers.at(-1)
  if (last && answers.length === item.answers.length && !isHanging) {
    const isClosed = saysClose(last)
    if (item.connection === 'closed' && !isClosed) found.push('the connection is kept')
    if (item.connection === 'kept' && isClosed) found.push('the connection is closed')
    if (item.mayAddBroken) {
      if (probe && probe.status !== 400) found.push('it goes on behind a broken request')
    } else if (!isClosed && probe?.status !== 200) {
      found.push(`the connection is out of step: then ${probe?.status ?? 'closed'}`)
    }
  }
  return found.map((sentence) => `${item.name}: ${sentence}`)
}

function statusViolations(expected: Expected, { status, body }: WireAnswer): string[] {
  const found: string[] = []
  if (status >= 500) found.push(`5xx: ${status} ${body}`)
  const error = errorIn(body)
  const matches = ({ status: wanted, error: code, bodiless }: Expected) =>
    wanted === status && (bodiless === true || code === error)
  if (!matches(expected) && !(expected.or && matches(expected.or))) {
    found.push(`wrong status: ${status} ${error ?? ''} instead of ${expected.status} ${expected.error ?? ''}`)
  }
  return found
}

function errorIn(body: string): string | null {
  const code = jsonOf(body)?.error
  return typeof code === 'string' ? code : null
}

function jsonOf(body: string): Record<string, unknown> | null {
  try {
    return JSON.parse(body) as Record<string, unknown> | null
  } catch {
    return null
  }
}

/** What every answer promises, whatever it says. */
function shapeViolations(expected: Expected, answer: WireAnswer): string[] {
  const found: string[] = []
  const names = answer.headers.map(([name]) => name)
  for (const name of names) if (!KNOWN_HEADERS.has(name)) found.push(`an unknown header: ${name}`)
  if (new Set(names).size !== names.length) found.push(`a header twice: ${names.join(', ')}`)
  const requestId = headerOf(answer, 'x-request-id') ?? ''
  if (!/^[0-9a-f-]{36}$/.test(requestId)) found.push('no X-Request-Id')
  if (expected.bodiless || answer.status === 204) return found
  if (answer.status < 400 && !(headerOf(answer, 'content-type') ?? '').startsWith('application/json')) return found
  const json = jsonOf(answer.body)
  if (json === null) return [...found, `no JSON: ${answer.body.slice(0, 200)}`]
  if (answer.status < 400) return json.ok === true || json.openapi ? found : [...found, 'ok is not true']
  if (answer.status === 403) {
    return answer.body === '{"ok":false,"error":"forbidden_scope"}'
      ? found
      : [...found, 'another body than the fixed one']
  }
  const isWhole = json.ok === false && typeof json.message === 'string' && typeof json.retryable === 'boolean'
  if (!isWhole || json.request_id !== requestId) found.push(`not an error as promised: ${answer.body.slice(0, 300)}`)
  return found
}

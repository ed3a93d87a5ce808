// One wide line for each request, written when its answer is out or its client is gone. Nothing in it can hold a
// secret: no header but the user agent, no query, no body, and what came from outside is redacted by shape.

import type { Principal } from '../model/principal.ts'
import type { Logger } from '../runtime/log.ts'
import { redactBeginning } from '../runtime/redact.ts'
import { memoize } from '../runtime/memoize.ts'
import type { Exchange } from './exchange.ts'
import { remoteAddress } from './remote-address.ts'
import { pathOf, type RequestHead } from './wire/head.ts'

const MAX_PATH = 200

/** What was answered, null if nothing was; and whether all of it went out. */
export interface Answering {
  readonly status: number | null
  readonly isOut: boolean
}

export type LogRequest = (exchange: Exchange, head: RequestHead, answering: Answering, ms: number) => void

/** Composed by hand: 2 µs, where a general serialiser takes 6. Text from outside is escaped by JSON.stringify, always. */
export function createAccessLog(logger: Logger, remoteAddr: 'full' | 'truncated' | 'off'): LogRequest {
  return (exchange, head, { status, isOut }, ms) => {
    const level = status !== null && status >= 500 ? 'warn' : 'info'
    if (!logger.isEnabled(level)) return
    const { principal, route, error, outcome, eventId } = exchange
    const agent = head.headers['user-agent']
    const address = remoteAddress(exchange.address, remoteAddr)
    let fields = `"msg":"request","request_id":"${exchange.requestId}","method":${quotedMethod(head.method ?? '')}`
    fields += route === null ? `,"route":null,"path":${quotedPath(head)}` : `,"route":"${route}"`
    fields += `,"status":${status}`
    if (error !== null) fields += `,"error":"${error}"`
    if (outcome !== null) fields += `,"outcome":"${outcome}"`
    if (eventId !== null) fields += `,"event_id":${eventId}`
    if (principal !== null) fields += principalFields(principal)
    if (exchange.operator !== null) fields += `,"operator":"${exchange.operator.operator.name}"`
    fields += `,"bytes_in":${exchange.bytesIn},"ms":${Math.round(ms * 100) / 100}`
    if (address !== null) fields += addressField(address)
    if (agent !== undefined) fields += agentField(agent)
    if (!isOut) fields += ',"client_gone":true'
    logger.composed(level, fields)
  }
}

const quotedMethod = memoize(quoted)
const addressField = memoize((address) => `,"remote_addr":${quoted(address)}`)
const agentField = memoize((agent) => `,"user_agent":${quoted(redactBeginning(agent, MAX_PATH))}`)

function quotedPath(head: RequestHead): string {
  return quoted(redactBeginning(pathOf(head), MAX_PATH))
}

const principals = new WeakMap<Principal, string>()

/** Key ids and scopes are of letters that need no escape. One text as long as a token is known. */
function principalFields(principal: Principal): string {
  const known = principals.get(principal)
  if (known !== undefined) return known
  const { keyId, accountId, companyId, scope } = principal
  const text = `,"key_id":"${keyId}","account_id":${accountId},"company_id":${companyId},"scope":"${scope}"`
  principals.set(principal, text)
  return text
}

function quoted(text: string): string {
  return JSON.stringify(text)
}

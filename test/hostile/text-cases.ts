// Every text in every place that takes one: all fields of a message, and every parameter, path, command and header of the
// calls that read and process.

import { type Expected, type HostileCase, refusal, wireOf } from './hostile-case.ts'
import type { Tokens } from './senders.ts'

const OK: Expected = { status: 200, error: null }
const BAD_QUERY = refusal(400, 'invalid_request')
const UNUSABLE = refusal(422, 'invalid_payload')
const NOT_FOUND = refusal(404, 'not_found')
const LOST = refusal(409, 'lease_lost')

interface Call {
  readonly name: string
  readonly method?: 'GET' | 'POST' | 'DELETE'
  readonly target: string
  readonly headers?: readonly string[]
  readonly body?: Buffer
  readonly answer: Expected
  readonly check?: HostileCase['check']
}

function callCase(
  token: string,
  { name, method = 'GET', target, headers = [], body, answer, check }: Call,
): HostileCase {
  const lines = [
    'Host: intray.test',
    `Authorization: Bearer ${token}`,
    ...headers,
    ...(body ? ['Content-Type: application/json', `Content-Length: ${body.length}`] : []),
  ]
  return {
    name,
    pieces: [wireOf(`${method} ${target} HTTP/1.1`, lines, body)],
    answers: [answer],
    stored: [],
    connection: 'kept',
    ...(check ? { check } : {}),
  }
}

/** A message in which every field is the text. */
export function messageCase({ sender }: Tokens, text: string, isUsable: boolean): HostileCase {
  const others = {
    contact: { name: text, email: text },
    message: { type: text, text },
    meta: { page_url: text, [text]: text },
    [text]: text,
  }
  const body = Buffer.from(JSON.stringify({ ...others, source_ref: text, channel_ref: text }))
  const agent = isHeaderText(text) ? [`User-Agent: ${text}`] : []
  const call = {
    name: `a message of ${shown(text)}`,
    method: 'POST',
    target: '/v1/inbox/events',
    headers: agent,
    body,
  } as const
  const item = callCase(sender, { ...call, answer: isUsable ? OK : UNUSABLE })
  return { ...item, stored: isUsable ? [body] : [] }
}

/** The same text in the fields that decide nothing: it is kept, whatever it is. */
export function fieldsCase({ sender }: Tokens, text: string): HostileCase {
  const body = Buffer.from(
    JSON.stringify({ contact: { name: text, email: text }, message: { type: text, text }, [text]: text }),
  )
  const call = { name: `fields of ${shown(text)}`, method: 'POST', target: '/api/inbox', body } as const
  return { ...callCase(sender, { ...call, answer: OK }), stored: [body] }
}

/** What reaches the store with the text. `id` is that of the message of the text, where there is one. */
export function storeCases({ processor }: Tokens, text: string, id: number | null): HostileCase[] {
  const given = (target: string, name: string, answer: Expected, check?: HostileCase['check']) =>
    callCase(processor, { ...queryCall(target, name, text, answer), ...(check && id !== null ? { check } : {}) })
  const events = (name: string, answer: Expected, check?: HostileCase['check']) =>
    given('/v1/inbox/events', name, answer, check)
  const upTo = (units: number, whenGood = OK, whenBad = BAD_QUERY): Expected => (fits(text, units) ? whenGood : whenBad)
  const isIn = (ids: readonly number[]) => (ids.includes(id!) ? null : `event ${id} is not found`)
  const isAlone = (ids: readonly number[]) => (ids.length === 1 ? isIn(ids) : `${ids.length} events instead of one`)
  return [
    events('source_ref', upTo(512), (body) => isAlone(idsIn(body))),
    events('channel_ref', upTo(512), (body) => isAlone(idsIn(body))),
    events('contact_email', upTo(320), (body) => isIn(idsIn(body))),
    events('message_type', upTo(64), (body) => isIn(idsIn(body))),
    events('key_id', upTo(32), (body) => (idsIn(body).length === 0 ? null : 'events of a key that is none')),
    events('q', fits(text, 200) && hasWord(text) ? OK : BAD_QUERY),
    events('scope', /^[a-z0-9][a-z0-9_.:-]{0,63}$/.test(text) ? OK : BAD_QUERY),
    given('/v1/inbox/conversations', 'channel_ref', upTo(512), (body) => isAlone(idsIn(body, 'conversations'))),
    commandCase(
      processor,
      '/v1/inbox/claims',
      { filter: { channel_ref: text }, subscription: 'none' },
      upTo(512, NOT_FOUND, UNUSABLE),
    ),
    commandCase(processor, '/v1/inbox/claims/ack', { id: 1, lease_id: text }, upTo(100, LOST, UNUSABLE)),
    commandCase(processor, '/v1/inbox/requeue', { filter: { channel_ref: text } }, upTo(512, OK, UNUSABLE)),
  ]
}

/** What is refused before the store is asked, or finds nothing there: parameters, paths, commands and headers. */
export function edgeCases({ processor }: Tokens, text: string): HostileCase[] {
  const part = encodeURIComponent(text.toWellFormed())
  const query = (target: string, name: string, answer = BAD_QUERY) =>
    callCase(processor, queryCall(target, name, text, answer))
  const command = (target: string, fields: object, answer = UNUSABLE) => commandCase(processor, target, fields, answer)
  const path = (target: string, method: Call['method'] = 'GET') =>
    callCase(processor, { name: `${method} ${target}`, method, target, answer: NOT_FOUND })
  const isName = /^[a-z0-9][a-z0-9_.-]{0,63}$/.test(text)
  const isId = isWhole(text, 0, 999_999_999_999_999)
  const header = { name: `Last-Event-ID: ${shown(text)}`, target: '/v1/inbox/stream', answer: BAD_QUERY }
  return [
    query('/v1/inbox/events', 'limit', isWhole(text, 1, 200) ? OK : BAD_QUERY),
    ...['cursor', 'kind', 'state', 'received_after', 'received_before', 'subscription'].map((name) =>
      query('/v1/inbox/events', name),
    ),
    query('/v1/inbox/conversations', 'cursor'),
    query('/v1/inbox/refusals', 'cursor'),
    query('/v1/inbox/events/1/revisions', 'cursor'),
    // A number is where a stream begins, and a stream does not end.
    ...(isId ? [] : [query('/v1/inbox/stream', 'after')]),
    ...(isId || !isHeaderText(text) ? [] : [callCase(processor, { ...header, headers: [`Last-Event-ID: ${text}`] })]),
    callCase(processor, {
      name: `a parameter called ${shown(text)}`,
      target: `/v1/inbox/events?${part}=1`,
      answer: BAD_QUERY,
    }),
    path(`/v1/inbox/events/${part}`),
    path(`/v1/inbox/conversations/${part}/events`),
    path(`/v1/inbox/subscriptions/${part}x!`, 'DELETE'),
    command('/v1/inbox/claims', { subscription: text }, isName ? NOT_FOUND : UNUSABLE),
    command('/v1/inbox/claims', { limit: text, ordered: text }),
    command('/v1/inbox/claims', { [text]: text }),
    command('/v1/inbox/claims/extend', { id: 1, lease_id: text }, fits(text, 100) ? LOST : UNUSABLE),
    command('/v1/inbox/claims/release', { id: 1, lease_id: 'x', error: text }, fits(text, 1000) ? LOST : UNUSABLE),
    command('/v1/inbox/claims/ack', { id: text, lease_id: 'x' }),
    command('/v1/inbox/requeue', { filter: { dead_after: text } }),
    command('/v1/inbox/subscriptions', { name: `${text} ` }),
  ]
}

function queryCall(target: string, name: string, text: string, answer: Expected): Call {
  const value = encodeURIComponent(text.toWellFormed())
  return { name: `${target}?${name}=${shown(text)}`, target: `${target}?${name}=${value}`, answer }
}

function commandCase(token: string, target: string, fields: object, answer: Expected): HostileCase {
  const body = Buffer.from(JSON.stringify(fields))
  return callCase(token, { name: `${target} ${shown(body.toString())}`, method: 'POST', target, body, answer })
}

function fits(text: string, units: number): boolean {
  return text.length >= 1 && text.length <= units && !text.includes('\0')
}

function hasWord(text: string): boolean {
  return /[\p{L}\p{N}\p{Extended_Pictographic}]/u.test(text)
}

function isWhole(text: string, min: number, max: number): boolean {
  return /^[0-9]{1,15}$/.test(text) && Number(text) >= min && Number(text) <= max
}

/** Whether it can stand in a header as it is. */
function isHeaderText(text: string): boolean {
  return /^[\x20-\x7e\xa0-\xff]+$/.test(text) && text.trim() !== ''
}

function idsIn(body: string, list = 'events'): number[] {
  return (JSON.parse(body) as Record<string, { id: number }[]>)[list]!.map(({ id }) => id)
}

function shown(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…${text.length}` : text)
}

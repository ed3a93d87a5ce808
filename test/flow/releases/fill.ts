// A little of everything that the database of a release can hold: sent, processed and erased through its own API and commands.

import assert from 'node:assert/strict'
import { gzipSync } from 'node:zlib'
import { until } from '../../support/until.ts'

type Json = Record<string, unknown>

export interface Tokens {
  readonly sender: string
  readonly processor: string
  readonly admin: string
  /** Of another company. */
  readonly otherSender: string
  readonly otherProcessor: string
}

export interface Service {
  readonly url: string
  /** What `intray <command> --json` prints. */
  command(...args: string[]): Promise<Json>
}

/** Posts with a token; a body that is no text or bytes is sent as JSON. */
type Call = (path: string, token: string, body: unknown, headers?: Record<string, string>) => Promise<Json>

const INTAKE = '/v1/inbox/events'

/** The first message, byte for byte. */
export const FIRST =
  '{"source_ref":"cf7:12:1","channel_ref":"ada@example.org","contact":{"name":"Ada Lovelace","email":"ada@example.org"},' +
  '"message":{"type":"text","text":"Do you ship to Malta?"},"meta":{"form_id":12,"big":12345678901234567890.10}}'

export async function fill({ url, command }: Service): Promise<Tokens> {
  const call: Call = async (path, token, body, headers = {}) => {
    const answer = await fetch(url + path, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json', ...headers },
      body: typeof body === 'string' || body instanceof Uint8Array ? (body as string) : JSON.stringify(body),
    })
    return (await answer.json()) as Json
  }
  const tokens = await createTokens(command)
  const sent = await sendMessages(call, tokens)
  await sendWhatIsRefused(call, tokens)
  await promoteRevision(url, call, tokens, sent.first)
  await processMessages(call, tokens, sent.failing)
  assert.equal((await call('/v1/inbox/erasures', tokens.admin, { event: sent.erased })).ok, true)
  // Nothing of it goes by age, however old it is when a test reads it.
  await command('retention', 'set', '--default', '--events', 'never', '--refusals', 'never', '--history', 'never')
  const rule = ['--events', '36500d', '--unprocessed', 'purge']
  await command('retention', 'set', '--account', '1', '--company', '2', ...rule)
  return tokens
}

async function createTokens(command: Service['command']): Promise<Tokens> {
  const create = async (company: string, scope: string, ...more: string[]) => {
    const tenant = ['--account', '1', '--company', company]
    return (await command('token', 'create', ...tenant, '--scope', scope, ...more)).token as string
  }
  const keyId = (token: string) => token.split('_')[1]!
  await command('token', 'rotate', keyId(await create('1', 'cf', '--expires', '2s')))
  await command('token', 'disable', keyId(await create('1', 'cf')))
  await command('operator', 'add', 'grace', '--role', 'viewer')
  return {
    sender: await create('1', 'cf', '--label', 'contact form'),
    processor: await create('1', 'processor'),
    admin: await create('1', 'admin'),
    otherSender: await create('2', 'bot', '--rate-limit', '1000/1s'),
    otherProcessor: await create('2', 'processor'),
  }
}

async function sendMessages(call: Call, { sender, otherSender }: Tokens) {
  const post = async (body: unknown, headers: Record<string, string> = {}, token = sender): Promise<number> => {
    const { ok, id } = await call(INTAKE, token, body, headers)
    assert.equal(ok, true)
    return id as number
  }
  const text = (sourceRef: string, channelRef: string | null, words: string) => ({
    source_ref: sourceRef,
    channel_ref: channelRef,
    message: { type: 'text', text: words },
  })
  const first = await post(FIRST)
  assert.equal(await post(FIRST), first)
  await post(FIRST.replace('Malta', 'Gozo'))
  await post(FIRST.replace('Malta', 'Sicily'))
  await post('{"source_ref":7,"channel_ref":42,"sourceRef":"a warning","contact":[]}')
  await post({ message: { text: 'without any reference' } })
  const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`
  await post({ message: { text: 'with a key' } }, { 'Idempotency-Key': 'key-1', traceparent })
  await post(' {"source_ref": "plain", "text": "Gr\\u00fc\\u00dfe \u{1F600}"}\n', { 'Content-Type': 'text/plain' })
  const zipped = gzipSync(JSON.stringify(text('zipped', 'zipped', 'lorem ipsum '.repeat(200))))
  await post(zipped, { 'Content-Encoding': 'gzip' })
  for (let n = 1; n <= 6; n++) await post(text(`run:${n}`, 'a run', `number ${n} of a run`))
  const failing = await post(text('failing', 'failing', 'this one fails'))
  await post(text('after', 'failing', 'and this one comes after it'))
  const erased = await post(text('erased', 'erased', 'to be forgotten'))
  await post(text('erased:2', 'erased', 'the same sender again'))
  for (let n = 1; n <= 4; n++) await post(text(`other:${n}`, n > 2 ? null : 'other', `other ${n}`), {}, otherSender)
  return { first, failing, erased }
}

async function sendWhatIsRefused(call: Call, { sender }: Tokens): Promise<void> {
  const form = { 'Content-Type': 'application/x-www-form-urlencoded' }
  const refused = [
    await call(INTAKE, sender, 'not json'),
    await call(INTAKE, sender, { source_ref: {} }),
    await call(INTAKE, sender, 'a=1', form),
  ]
  assert.deepEqual(
    refused.map(({ error }) => error),
    ['invalid_json', 'invalid_payload', 'unsupported_media_type'],
  )
}

async function promoteRevision(url: string, call: Call, { processor }: Tokens, first: number): Promise<void> {
  const headers = { Authorization: `Bearer ${processor}` }
  const answer = await fetch(`${url}${INTAKE}/${first}/revisions`, { headers })
  const { revisions } = (await answer.json()) as { revisions: { id: number }[] }
  assert.equal((await call(`${INTAKE}/${revisions[1]!.id}/promote`, processor, '')).ok, true)
}

/** Of the default subscription, what came before `failing` is done, that one is dead, and the rest is pending. */
async function processMessages(call: Call, { processor }: Tokens, failing: number): Promise<void> {
  const claim = async (subscription: string, limit: number) => {
    const { events } = await call('/v1/inbox/claims', processor, { subscription, limit, lease_s: 600, wait_s: 5 })
    return (events as { id: number; lease_id: string }[]).map(({ id, lease_id }) => ({ id, lease_id }))
  }
  const settle = async (what: 'ack' | 'release', body: { readonly events: readonly object[] }) => {
    if (body.events.length > 0) await call(`/v1/inbox/claims/${what}`, processor, body)
  }
  await until('the one that fails is claimed', async () => {
    const claimed = await claim('default', 100)
    await settle('ack', { events: claimed.filter(({ id }) => id < failing) })
    await settle('release', { events: claimed.filter(({ id }) => id > failing) })
    const fails = { events: claimed.filter(({ id }) => id === failing), error: 'it fails', dead: true }
    await settle('release', fails)
    return fails.events.length > 0
  })
  const crm = { name: 'crm', from: 'beginning', max_attempts: 3, first_delay_s: 5 }
  await call('/v1/inbox/subscriptions', processor, crm)
  const failed = { subscription: 'crm', events: await claim('crm', 1), error: 'the CRM answered 500' }
  assert.equal(failed.events.length, 1)
  await settle('release', failed)
}

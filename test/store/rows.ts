// Rows to put into a store: each is complete, and a test says only what matters to it.

import assert from 'node:assert/strict'
import type { Refusal } from '../../src/model/refusal.ts'
import { newUuid, randomBase62 } from '../../src/runtime/id.ts'
import type { AppendItem, AppendOutcome } from '../../src/store/contract/append.ts'
import type { NewToken } from '../../src/store/contract/tokens.ts'

export const TENANT = { accountId: 7, companyId: 42 } as const
export const NOON = Date.parse('2026-11-15T12:00:00.000Z')

export type ItemFields = Partial<AppendItem> & {
  /** Becomes the payload: text as it is, anything else as JSON. */
  readonly body?: unknown
}

/** A message nobody has seen before, unless told otherwise: it has no source_ref. */
export function item({ body = { text: 'hello' }, ...fields }: ItemFields = {}): AppendItem {
  return {
    mintedKey: newUuid(),
    ...TENANT,
    receivedAt: NOON,
    keyId: 'AAAAAAAAAA',
    scope: 'cf',
    route: '/v1/inbox/events',
    sourceRef: null,
    channelRef: null,
    idempotencyKey: null,
    contentType: 'application/json',
    origin: 'intake',
    requestId: newUuid(),
    traceparent: null,
    userAgent: null,
    remoteAddr: null,
    recipe: null,
    payload: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
    ...fields,
  }
}

/** An item that no database takes: its time is not a number. */
export function badItem(fields: ItemFields = {}): AppendItem {
  return item({ ...fields, receivedAt: 'soon' as unknown as number })
}

export function newToken(fields: Partial<NewToken> = {}): NewToken {
  return {
    keyId: randomBase62(10),
    hash: new Uint8Array(32).fill(7),
    ...TENANT,
    scope: 'cf',
    label: 'a form',
    expiresAt: null,
    createdAt: NOON,
    rotatedFrom: null,
    rateLimit: null,
    ...fields,
  }
}

export function refusal(fields: Partial<Refusal> = {}): Refusal {
  return {
    ...TENANT,
    receivedAt: NOON,
    keyId: 'AAAAAAAAAA',
    code: 'invalid_json',
    reason: null,
    route: '/v1/inbox/events',
    requestId: newUuid(),
    headers: { 'content-type': 'text/plain' },
    body: Buffer.from('name=Ada'),
    bodySize: 8,
    ...fields,
  }
}

export function idOf(outcome: AppendOutcome | undefined): number {
  assert.ok(outcome && 'id' in outcome, `has no id: ${JSON.stringify(outcome)}`)
  return outcome.id
}

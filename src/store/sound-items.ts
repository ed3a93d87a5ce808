// What no database could take is found before one is asked, item by item, so that it fails alone and is the same on all of them.

import type { AppendItem, AppendOutcome } from './contract/append.ts'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** Appends those that can be; the others have failed, each in its place. */
export async function appendSound(
  items: readonly AppendItem[],
  append: (sound: readonly AppendItem[]) => Promise<AppendOutcome[]>,
): Promise<AppendOutcome[]> {
  const problems = items.map(problemOf)
  const sound = items.filter((_, at) => problems[at] === null)
  const outcomes = sound.length === 0 ? [] : await append(sound)
  if (sound.length === items.length) return outcomes
  const stored = outcomes.values()
  return problems.map((reason) => (reason === null ? stored.next().value! : { outcome: 'failed', reason }))
}

/** Why an item cannot be stored at all; null if nothing speaks against it. Field by field: a list of names takes three times as long. */
function problemOf(item: AppendItem): string | null {
  return (
    number('companyId', item.companyId) ??
    number('accountId', item.accountId) ??
    number('receivedAt', item.receivedAt) ??
    text('keyId', item.keyId) ??
    text('scope', item.scope) ??
    text('route', item.route) ??
    text('origin', item.origin) ??
    text('contentType', item.contentType) ??
    text('requestId', item.requestId) ??
    optionalText('sourceRef', item.sourceRef) ??
    optionalText('channelRef', item.channelRef) ??
    optionalText('idempotencyKey', item.idempotencyKey) ??
    optionalText('traceparent', item.traceparent) ??
    optionalText('userAgent', item.userAgent) ??
    optionalText('remoteAddr', item.remoteAddr) ??
    uuid('mintedKey', item.mintedKey)
  )
}

function number(name: string, value: unknown): string | null {
  return Number.isSafeInteger(value) ? null : `${name} is not a whole number`
}

function text(name: string, value: unknown): string | null {
  return typeof value === 'string' ? null : `${name} is not a text`
}

function optionalText(name: string, value: unknown): string | null {
  return value === null ? null : text(name, value)
}

function uuid(name: string, value: unknown): string | null {
  return typeof value === 'string' && UUID.test(value) ? null : `${name} is not a UUID`
}

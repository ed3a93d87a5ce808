// The request that delivers an event: its body as the endpoint wants it, its headers and its signature.

import type { Endpoint, EndpointTarget } from '../../model/endpoint.ts'
import { VERSION } from '../../runtime/version.ts'
import type { ClaimedEvent } from '../../store/contract/processing.ts'
import { pushedEventJson } from '../views.ts'
import type { PushRequest } from './http-client.ts'
import { keyOfSecret, sign } from './signature.ts'
import { liveSecrets } from './target.ts'

export interface Message {
  readonly id: string
  readonly contentType: string
  readonly body: readonly Uint8Array[]
  readonly headers: Readonly<Record<string, string>>
}

/** Why an event cannot be sent as it came: it never will be. */
export const NO_PAYLOAD = 'There is no payload to send as it came: it was erased, or is damaged.'

/**
 * The id is the same for every try and every replay of an event to an endpoint, so that the receiver can tell a repetition. Event ids
 * are those of a database, so the id of the endpoint makes it unique. It has no dot, which separates what is signed.
 */
export function messageId(eventId: number, endpointId: string): string {
  return `evt_${eventId}_${endpointId}`
}

/** Null: the event has no payload, and the endpoint wants nothing else. */
export function messageOf(claimed: ClaimedEvent, { id, body }: Endpoint): Message | null {
  const { event, attempts, payload } = claimed
  const common = {
    id: messageId(event.id, id),
    headers: { 'Intray-Event-Id': String(event.id), 'Intray-Attempt': String(attempts) },
  }
  if (body === 'event') return { ...common, contentType: 'application/json', body: pushedEventJson(claimed) }
  return payload === null ? null : { ...common, contentType: headerText(event.contentType), body: [payload] }
}

/** The content type is the sender's text. */
function headerText(contentType: string): string {
  return /^[\x20-\x7e]+$/.test(contentType) ? contentType : 'application/octet-stream'
}

export async function requestOf(
  { id, contentType, body, headers }: Message,
  target: EndpointTarget,
  timeoutMs: number,
  now: number,
  traceparent: string | null,
): Promise<PushRequest> {
  const keys = liveSecrets(target, now).map(({ secret }) => keyOfSecret(secret)!)
  const size = body.reduce((sum, part) => sum + part.byteLength, 0)
  return {
    timeoutMs,
    body,
    headers: {
      ...Object.fromEntries(target.headers.map(({ name, value }) => [name, value])),
      'User-Agent': `Intray/${VERSION}`,
      'Content-Type': contentType,
      'Content-Length': String(size),
      ...(traceparent === null ? {} : { traceparent }),
      ...headers,
      ...(await sign(keys, id, now, body)),
    },
  }
}

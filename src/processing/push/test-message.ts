// The message of "send a test": shaped and signed like a delivery, and marked, so that a receiver need not process it.

import type { Endpoint } from '../../model/endpoint.ts'
import { isoTime } from '../../runtime/clock.ts'
import type { Message } from './delivery.ts'

const PAYLOAD = { message: { type: 'test', text: 'A test from Intray: your endpoint is reached.' } }

export function testMessage({ body, id: endpointId }: Endpoint, uuid: string, now: number): Message {
  const event = {
    id: 0,
    attempts: 1,
    conversation_id: null,
    channel_ref: null,
    source_ref: null,
    received_at: isoTime(now),
    scope: 'test',
    key_id: `ep_${endpointId}`,
    traceparent: null,
    content_type: 'application/json',
    payload: PAYLOAD,
  }
  return {
    id: `test_${uuid.replaceAll('-', '')}_${endpointId}`,
    contentType: 'application/json',
    body: [Buffer.from(JSON.stringify(body === 'raw' ? PAYLOAD : event))],
    headers: { 'Intray-Test': 'true' },
  }
}

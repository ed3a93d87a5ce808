// The answer to a claim, with the payloads as they were sent.

import type { Claims } from '../../processing/claims.ts'
import { claimedEventParts } from '../../processing/views.ts'
import { JSON_CONTENT } from '../answer.ts'
import type { Answer } from '../problem.ts'

type ClaimedEvent = NonNullable<Awaited<ReturnType<Claims['claim']>>>[number]

export function claimedEvents(claimed: readonly ClaimedEvent[]): Answer {
  const parts: Uint8Array[] = [Buffer.from('{"ok":true,"events":[')]
  for (const [n, one] of claimed.entries()) {
    if (n > 0) parts.push(Buffer.from(','))
    parts.push(...claimedEventParts(one))
  }
  parts.push(Buffer.from(']}'))
  return {
    status: 200,
    headers: { 'Content-Type': JSON_CONTENT, 'Cache-Control': 'no-store' },
    body: Buffer.concat(parts),
  }
}

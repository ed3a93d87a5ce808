// The answer to a claim, with the payloads as they were sent.

import type { Claims } from '../../processing/claims.ts'
import { claimedEventJson } from '../../processing/views.ts'
import type { Answer } from '../problem.ts'
import { JSON_CONTENT } from '../wire/answer.ts'

type ClaimedEvent = NonNullable<Awaited<ReturnType<Claims['claim']>>>[number]

const COMMA = Buffer.from(',')

export function claimedEvents(claimed: readonly ClaimedEvent[]): Answer {
  return {
    status: 200,
    headers: { 'Content-Type': JSON_CONTENT, 'Cache-Control': 'no-store' },
    body: Buffer.concat([
      Buffer.from('{"ok":true,"events":['),
      ...claimed.flatMap((one, n) => (n === 0 ? [claimedEventJson(one)] : [COMMA, claimedEventJson(one)])),
      Buffer.from(']}'),
    ]),
  }
}

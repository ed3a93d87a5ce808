// The fields that intake reads from the head of a request, memoized on the head: a sender that keeps its connection sends the
// same head again, except for its length.

import { bearerToken, type Credentials } from '../../auth/bearer.ts'
import type { Problem } from '../../model/errors.ts'
import { createRedactor } from '../../runtime/redact.ts'
import type { RequestHead } from './head.ts'
import { type BodyEncoding, contentEncoding, messageMediaProblem } from './media.ts'
import { headerValues } from './raw-headers.ts'

export const MAX_HEADER_KEPT = 512
const redactAgent = createRedactor(MAX_HEADER_KEPT)
const redactType = createRedactor(MAX_HEADER_KEPT)

export interface IntakeHead {
  readonly encoding: BodyEncoding | Problem
  readonly mediaProblem: Problem | null
  readonly contentType: string
  readonly idempotencyKeys: readonly string[]
  readonly traceparent: string | null
  readonly userAgent: string | null
}

const CREDENTIALS = Symbol('credentials')
const READ = Symbol('read')

/** Heads with another length inherit both (plain-request.ts). */
type MemoizedHead = RequestHead & { [CREDENTIALS]?: Credentials; [READ]?: IntakeHead }

export function credentialsOf(head: MemoizedHead): Credentials {
  return (head[CREDENTIALS] ??= bearerToken(head.rawHeaders))
}

export function intakeHead(head: MemoizedHead): IntakeHead {
  return (head[READ] ??= read(head))
}

function read(head: RequestHead): IntakeHead {
  const agent = head.headers['user-agent']
  return {
    encoding: contentEncoding(head),
    mediaProblem: messageMediaProblem(head),
    contentType: redactType(head.headers['content-type'] ?? ''),
    idempotencyKeys: headerValues(head.rawHeaders, 'idempotency-key'),
    traceparent: traceparent(head),
    userAgent: agent === undefined ? null : redactAgent(agent),
  }
}

/** Null unless it has the form of the W3C Trace Context. */
function traceparent({ headers }: RequestHead): string | null {
  const value = headers.traceparent
  return typeof value === 'string' && /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/.test(value) ? value : null
}

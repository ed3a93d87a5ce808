// A refusal: a request with a valid token that was refused for its content, kept so that the integrator can see why.

import type { ErrorCode } from './errors.ts'
import type { Tenant } from './principal.ts'

/** How much of a refused body is kept. */
export const REFUSAL_BODY_BYTES = 64 * 1024

export interface Refusal extends Tenant {
  readonly receivedAt: number
  readonly keyId: string
  readonly code: ErrorCode
  /** The sentence that the sender got, if it says more than that of the code. */
  readonly reason: string | null
  readonly route: string
  readonly requestId: string
  /** Only headers from a list that holds no secrets. */
  readonly headers: Readonly<Record<string, string>>
  /** The first bytes of the body, with anything shaped like a token masked. */
  readonly body: Uint8Array
  /** Bytes of the body that arrived in total. */
  readonly bodySize: number
}

export interface StoredRefusal extends Refusal {
  readonly id: number
  /** The event that an operator created from it; null for most refusals. */
  readonly acceptedAs: number | null
}

// An endpoint: the URL that a subscription is pushed to. Its circuit withholds deliveries after a run of failures:
//
//            RUN failures in a row                     the time is over
//   closed ───────────────────────────► open ──────────────────────────────► half-open: one delivery is tried
//      ▲                                 ▲                                        │
//      │                                 └── it fails: open for twice as long ◄───┤
//      └──────────────────────────────────── it is answered 2xx ◄─────────────────┘
//
// What the circuit withholds stays in the queue and costs no attempt.

import type { Tenant } from './principal.ts'

export type BodyForm = 'event' | 'raw'

export const BODY_FORMS: readonly BodyForm[] = ['event', 'raw']

export const ENDPOINT_LIMITS = {
  /** From the beginning of a request until its status. */
  timeoutMs: { min: 1000, max: 60_000, fallback: 10_000 },
  /** Conversations that are delivered to it at the same time, on each node. */
  concurrency: { min: 1, max: 64, fallback: 8 },
  headers: 20,
  headerNameUnits: 128,
  headerValueUnits: 2048,
  /** Two can be in use during a rotation; a third would make the header of signatures long for nothing. */
  secrets: 2,
  overlapMs: { min: 60_000, max: 30 * 86_400_000 },
  /** Kept for each endpoint, to be looked at. */
  attempts: 100,
} as const

/**
 * Of subscriptions that are pushed and have no rules of their own: 15 attempts in 11 to 14 hours. A processor that claims is there;
 * an endpoint may be down for a night.
 */
export const PUSH_RETRY_RULES = { maxAttempts: 15, firstDelayMs: 5000, maxDelayMs: 21_600_000 } as const

export interface HeaderField {
  readonly name: string
  readonly value: string
  readonly isSecret: boolean
}

export interface SigningSecret {
  /** With its prefix whsec_. */
  readonly secret: string
  readonly createdAt: number
  /** It no longer signs from then on; null: it is the current one. */
  readonly endsAt: number | null
}

/** What is sealed: a URL too may hold a secret of the receiver. */
export interface EndpointTarget {
  readonly url: string
  readonly headers: readonly HeaderField[]
  readonly secrets: readonly SigningSecret[]
}

export interface Circuit {
  /** Null: closed. */
  readonly openedAt: number | null
  /** From then on, one delivery is tried. */
  readonly retryAt: number | null
  /** How often it opened since it was closed. */
  readonly trips: number
}

/** What an operator sets. */
export interface EndpointSettings {
  /** Stable for as long as the endpoint exists; in the id of each delivery. */
  readonly id: string
  readonly isActive: boolean
  readonly body: BodyForm
  readonly timeoutMs: number
  readonly concurrency: number
  /** An EndpointTarget as JSON, sealed for `sealedFor`. */
  readonly sealed: Uint8Array
  /** Why the service disabled it; null if an operator paused it, or it is active. */
  readonly disabledReason: string | null
}

export interface Endpoint extends EndpointSettings, Tenant {
  readonly subscription: string
  readonly createdAt: number
  readonly changedAt: number
  readonly circuit: Circuit
  /** Counts the changes of its settings. */
  readonly revision: number
  /** Its tenant is moved to another database, or its subscription is gone: nothing is pushed. */
  readonly isGone: boolean
  readonly generation: number
}

export type EndpointState = 'active' | 'paused' | 'disabled' | 'open' | 'half_open'

export function endpointState({ isActive, disabledReason, circuit }: Endpoint, now: number): EndpointState {
  if (!isActive) return disabledReason === null ? 'paused' : 'disabled'
  if (circuit.openedAt === null) return 'active'
  return (circuit.retryAt ?? 0) > now ? 'open' : 'half_open'
}

/** The identity of the row with which its target is sealed. */
export function sealedFor({ accountId, companyId }: Tenant, id: string): string {
  return `${accountId}/${companyId}/${id}`
}

export const CLOSED: Circuit = { openedAt: null, retryAt: null, trips: 0 }

/** More than the requests that one short fault of a receiver with usual concurrency fails at once. */
export const FAILURES_TO_OPEN = 10
/** A restart of the receiver is over by then. */
const FIRST_OPEN_MS = 30_000
/** A receiver that is back waits no longer than this. */
const MAX_OPEN_MS = 600_000

export function openCircuit({ openedAt, trips }: Circuit, now: number): Circuit {
  const openMs = Math.min(MAX_OPEN_MS, FIRST_OPEN_MS * 2 ** Math.min(trips, 10))
  return { openedAt: openedAt ?? now, retryAt: now + openMs, trips: trips + 1 }
}

/** One request of a push, kept to be looked at. Holds nothing of the event or of the answer's body: erasures do not look here. */
export interface PushAttempt {
  readonly at: number
  readonly eventId: number
  readonly attempt: number
  /** Null: no answer. */
  readonly status: number | null
  /** Null if the endpoint took the event. */
  readonly failure: string | null
  readonly ms: number
}

// Load shedding: answers inbox requests 503 while intake is under pressure, because storing messages comes first. Requests
// that finish work (ack, extend, release) still pass, because unacknowledged events are processed again; they may exceed a
// tenant's share. Also bounds the inbox requests in progress, on a node and for a tenant.

import type { Problem } from '../model/errors.ts'
import { tenantText } from '../model/principal.ts'
import { type Release, ConcurrencyLimiter } from '../runtime/concurrency-limiter.ts'
import type { Exchange } from './exchange.ts'
import type { OperationName, Route } from './routes.ts'

export interface LoadShedderOptions {
  readonly inboxMaxRequests: number
  readonly inboxMaxClaims: number
  /** Percent of the slots. */
  readonly tenantShare: number
  /** Intake backpressure. */
  readonly isUnderPressure: () => boolean
}

/** Operations that finish work in progress. */
const FINISHING: ReadonlySet<OperationName> = new Set(['ack', 'extend', 'release'])

export class LoadShedder {
  readonly #options: LoadShedderOptions
  readonly #requests: ConcurrencyLimiter
  readonly #claims: ConcurrencyLimiter

  constructor(options: LoadShedderOptions) {
    this.#options = options
    this.#requests = new ConcurrencyLimiter(options.inboxMaxRequests, options.tenantShare)
    this.#claims = new ConcurrencyLimiter(options.inboxMaxClaims, options.tenantShare)
  }

  /** Requests in progress; claims include those that wait for events. */
  get inProgress(): { readonly requests: number; readonly claims: number } {
    return { requests: this.#requests.inUse, claims: this.#claims.inUse }
  }

  /** A slot to release once the request is answered, or the problem to answer with. */
  acquire(route: Route, { principal }: Exchange): Release | Problem {
    if (route.scope !== 'processor' && route.scope !== 'admin') return NO_SLOT
    const { isUnderPressure } = this.#options
    const isFinishing = FINISHING.has(route.operation)
    if (!isFinishing && isUnderPressure()) return UNDER_PRESSURE
    // The stream hub bounds the number of streams.
    if (route.operation === 'stream') return NO_SLOT
    const limiter = route.operation === 'claim' ? this.#claims : this.#requests
    return limiter.acquire(tenantText(principal!), isFinishing) ?? TOO_MANY
  }
}

const NO_SLOT: Release = () => {}
const UNDER_PRESSURE: Problem = {
  code: 'overloaded',
  message: 'The service is busy storing messages, which come before reads. Ask again after Retry-After seconds.',
}
const TOO_MANY: Problem = {
  code: 'overloaded',
  message:
    'Too many inbox requests are in progress, on this node or for this tenant. Ask again after Retry-After seconds.',
}

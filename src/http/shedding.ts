// What is given up first when there is too much to do. Taking messages in comes before everything else: while the intake is
// pressed, reading and claiming are answered 503. Finishing work that was begun (ack, extend, release) goes on, since what is
// not acknowledged is done again; it may exceed a tenant's share. And in all cases only so many requests of the inbox are under
// way at once: on a node, for a tenant, so that none can take all the places, and on one connection, where requests may be sent
// ahead of their answers.

import type { IncomingMessage } from 'node:http'
import type { Problem } from '../model/errors.ts'
import { tenantText } from '../model/principal.ts'
import { type Leave, Places } from '../runtime/places.ts'
import type { Exchange } from './exchange.ts'
import type { OperationName, Route } from './routes.ts'
import { openAnswers } from './wire/open-answers.ts'

export interface SheddingOptions {
  readonly inboxMaxRequests: number
  readonly inboxMaxClaims: number
  readonly inboxMaxPipelined: number
  /** Percent of the places. */
  readonly tenantShare: number
  /** The intake has as much to do as it can. */
  readonly isPressed: () => boolean
}

/** These finish what was begun. */
const FINISHING: ReadonlySet<OperationName> = new Set(['ack', 'extend', 'release'])

export class Shedding {
  readonly #options: SheddingOptions
  readonly #requests: Places
  readonly #claims: Places

  constructor(options: SheddingOptions) {
    this.#options = options
    this.#requests = new Places(options.inboxMaxRequests, options.tenantShare)
    this.#claims = new Places(options.inboxMaxClaims, options.tenantShare)
  }

  /** What is under way: calls that wait for the store, and claims, which may be waiting for something to come. */
  get underWay(): { readonly requests: number; readonly claims: number } {
    return { requests: this.#requests.taken, claims: this.#claims.taken }
  }

  /** A place, to be left when the answer is there; or why there is none. */
  enter(route: Route, req: IncomingMessage, { principal }: Exchange): Leave | Problem {
    if (route.scope !== 'processor') return NOTHING_TO_LEAVE
    const { inboxMaxPipelined, isPressed } = this.#options
    if (openAnswers(req.socket).findIndex((answer) => answer.req === req) >= inboxMaxPipelined) return TOO_MANY_HERE
    const isFinishing = FINISHING.has(route.operation)
    if (!isFinishing && isPressed()) return PRESSED
    // Open or opening, they have places of their own, and all that open ask the store one question.
    if (route.operation === 'stream') return NOTHING_TO_LEAVE
    const places = route.operation === 'claim' ? this.#claims : this.#requests
    return places.enter(tenantText(principal!), isFinishing) ?? TOO_MANY
  }
}

const NOTHING_TO_LEAVE: Leave = () => {}
const PRESSED: Problem = {
  code: 'overloaded',
  message: 'The service is busy storing messages, which come before reads. Ask again after Retry-After seconds.',
}
const TOO_MANY: Problem = {
  code: 'overloaded',
  message:
    'Too many inbox requests are in progress, on this node or for this tenant. Ask again after Retry-After seconds.',
}
const TOO_MANY_HERE: Problem = {
  code: 'overloaded',
  message: 'Too many requests on this connection are waiting for answers. Wait for some, or open another connection.',
}

// What is given up first when there is too much to do. Taking messages in comes before everything else: while the intake is
// pressed, reading and claiming are answered 503. Finishing work that was begun (ack, extend, release) goes on, since what is
// not acknowledged is done again. And in all cases only so many requests of the inbox are under way at once, on a node and on one
// connection: a client that sends requests ahead of their answers (pipelining) cannot take all the places.

import type { IncomingMessage } from 'node:http'
import type { Problem } from '../model/errors.ts'
import { openAnswers } from './exchange.ts'
import type { OperationName, Route } from './routes.ts'

export interface SheddingOptions {
  readonly inboxMaxRequests: number
  readonly inboxMaxClaims: number
  readonly inboxMaxPipelined: number
  /** The intake has as much to do as it can. */
  readonly isPressed: () => boolean
}

type Leave = () => void

/** These finish what was begun. */
const FINISHING: ReadonlySet<OperationName> = new Set(['ack', 'extend', 'release'])

export class Shedding {
  readonly #options: SheddingOptions
  #requests = 0
  #claims = 0

  constructor(options: SheddingOptions) {
    this.#options = options
  }

  /** What is under way: calls that wait for the store, and claims, which may be waiting for something to come. */
  get underWay(): { readonly requests: number; readonly claims: number } {
    return { requests: this.#requests, claims: this.#claims }
  }

  /** A place, to be left when the answer is there; or why there is none. */
  enter(route: Route, req: IncomingMessage): Leave | Problem {
    if (route.scope !== 'processor') return NOTHING_TO_LEAVE
    const { inboxMaxRequests, inboxMaxClaims, inboxMaxPipelined, isPressed } = this.#options
    if (openAnswers(req.socket).length > inboxMaxPipelined) return TOO_MANY_HERE
    if (!FINISHING.has(route.operation) && isPressed()) return PRESSED
    if (route.operation === 'claim') {
      if (this.#claims >= inboxMaxClaims) return TOO_MANY
      this.#claims += 1
      return () => (this.#claims -= 1)
    }
    if (this.#requests >= inboxMaxRequests) return TOO_MANY
    this.#requests += 1
    return () => (this.#requests -= 1)
  }
}

const NOTHING_TO_LEAVE: Leave = () => {}
const PRESSED: Problem = {
  code: 'overloaded',
  message: 'More messages come in than can be stored, and they go first. Ask again after Retry-After seconds.',
}
const TOO_MANY: Problem = {
  code: 'overloaded',
  message: 'Too many requests of the inbox are under way here. Ask again after Retry-After seconds.',
}
const TOO_MANY_HERE: Problem = {
  code: 'overloaded',
  message: 'Too many requests on this connection wait for their answers. Wait for some, or open another connection.',
}

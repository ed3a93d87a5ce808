// Endpoints of subscriptions over HTTP: what they are, what was sent to them lately, and every change.

import type { Problem } from '../../model/errors.ts'
import { ENDPOINT_LIMITS } from '../../model/endpoint.ts'
import { isSubscriptionName } from '../../processing/commands.ts'
import { readEndpoint, readReplay, readRotation } from '../../processing/push/endpoint-commands.ts'
import { attemptSummary, attemptView, endpointView, testView } from '../../processing/push/endpoint-views.ts'
import type { ChangedEndpoint, Endpoints, Missing } from '../../processing/push/endpoints.ts'
import type { Clock } from '../../runtime/clock.ts'
import { SecretUnreadable } from '../../runtime/secret-box.ts'
import { wholeNumber } from '../../runtime/parameter.ts'
import { SecretsKeyMissing } from '../../runtime/secrets.ts'
import { type Call, callerOf, jsonAnswer, type Operation, type Outcome } from '../call.ts'
import { invalidRequest } from '../problem.ts'
import { withQuery } from '../query.ts'
import { orUnavailable } from '../unavailable.ts'
import { NO_SUBSCRIPTION } from './claims.ts'
import { OUTCOME_UNKNOWN, withCommand } from './command.ts'

/** Fits the longest headers that are allowed, escaped, with room to spare. */
const MAX_ENDPOINT_BYTES = 128 * 1024

const NO_ENDPOINT: Problem = {
  code: 'not_found',
  message:
    'This subscription has no endpoint. Set one with POST /v1/inbox/subscriptions/{name}/endpoint, or ./intray endpoint set.',
}
const NO_URL = invalidRequest('This subscription has no endpoint yet, so url must be given.')
const MISSING: Readonly<Record<Missing, Problem>> = {
  no_subscription: NO_SUBSCRIPTION,
  no_endpoint: NO_ENDPOINT,
  no_url: NO_URL,
}

export function createEndpointOperations(endpoints: Endpoints, clock: Clock) {
  const changed = (result: ChangedEndpoint | Missing, more: Record<string, unknown> = {}): Outcome => {
    if (typeof result === 'string') return MISSING[result]
    const secret = result.madeSecret === null ? {} : { secret: result.madeSecret }
    return jsonAnswer({ ...more, endpoint: { ...endpointView(result, clock.now()), ...secret } })
  }

  return {
    listEndpoints: withoutQuery(async (call) => {
      const all = await endpoints.list(callerOf(call))
      return jsonAnswer({ endpoints: all.map((one) => endpointView(one, clock.now())) })
    }),
    showEndpoint: withoutQuery(async (call) => {
      const found = await endpoints.find(callerOf(call), nameIn(call))
      if (!found) return NO_ENDPOINT
      const attempts = await endpoints.attempts(callerOf(call), nameIn(call), ENDPOINT_LIMITS.attempts)
      return jsonAnswer({ endpoint: { ...endpointView(found, clock.now()), recent: attemptSummary(attempts) } })
    }),
    setEndpoint: withCommand(
      readEndpoint,
      secretly(async (call, change) => {
        const result = await endpoints.set(callerOf(call), nameIn(call), change)
        return changed(result, typeof result === 'string' ? {} : { created: result.created })
      }),
      MAX_ENDPOINT_BYTES,
    ),
    removeEndpoint: withoutQuery(async (call) =>
      (await endpoints.remove(callerOf(call), nameIn(call))) ? jsonAnswer({ subscription: nameIn(call) }) : NO_ENDPOINT,
    ),
    endpointAttempts: withQuery({ limit: wholeNumber(1, ENDPOINT_LIMITS.attempts) }, (call, { limit }) =>
      orUnavailable(async () => {
        if (!(await endpoints.find(callerOf(call), nameIn(call)))) return NO_ENDPOINT
        const attempts = await endpoints.attempts(callerOf(call), nameIn(call), limit ?? DEFAULT_ATTEMPTS)
        return jsonAnswer({ attempts: attempts.map(attemptView) })
      }, OUTCOME_UNKNOWN),
    ),
    pauseEndpoint: withoutQuery(async (call) =>
      changed(await endpoints.setActive(callerOf(call), nameIn(call), false)),
    ),
    resumeEndpoint: withoutQuery(async (call) =>
      changed(await endpoints.setActive(callerOf(call), nameIn(call), true)),
    ),
    rotateEndpointSecret: withCommand(
      readRotation,
      secretly(async (call, rotation) => changed(await endpoints.rotateSecret(callerOf(call), nameIn(call), rotation))),
    ),
    testEndpoint: withoutQuery(async (call) => {
      const tested = await endpoints.test(callerOf(call), nameIn(call))
      return typeof tested === 'string'
        ? MISSING[tested]
        : jsonAnswer({ subscription: nameIn(call), test: testView(tested) })
    }),
    replayToEndpoint: withCommand(readReplay, async (call, { range, limit, dryRun }) => {
      const subscription = nameIn(call)
      call.exchange.isNoOp = dryRun
      const matched = await endpoints.countReplay(callerOf(call), nameIn(call), range)
      if (matched === null) return NO_SUBSCRIPTION
      if (dryRun) return jsonAnswer({ subscription, dry_run: true, matched, replayed: 0, next: null })
      const done = await endpoints.replay(callerOf(call), nameIn(call), range, limit)
      if (done === null) return NO_SUBSCRIPTION
      return jsonAnswer({ subscription, dry_run: false, matched, replayed: done.count, next: done.nextId })
    }),
  } satisfies Record<string, Operation>
}

export type EndpointOperations = ReturnType<typeof createEndpointOperations>

const DEFAULT_ATTEMPTS = 20

/** A name that no subscription can have is answered like an unknown one. */
function nameIn({ params }: Call): string {
  const name = params.name ?? ''
  return isSubscriptionName(name) ? name : ''
}

function withoutQuery(work: (call: Call) => Promise<Outcome>): Operation {
  return withQuery({}, (call) => orUnavailable(() => secretly(work)(call), OUTCOME_UNKNOWN))
}

/** Secrets that cannot be opened or sealed are the operator's matter. */
function secretly<A extends unknown[]>(work: (...args: A) => Promise<Outcome>): (...args: A) => Promise<Outcome> {
  return async (...args) => {
    try {
      return await work(...args)
    } catch (error) {
      if (error instanceof SecretsKeyMissing || error instanceof SecretUnreadable) return SECRETS_UNAVAILABLE
      throw error
    }
  }
}

const SECRETS_UNAVAILABLE: Problem = {
  code: 'secrets_unavailable',
  message:
    'The server lacks the key under which the secrets of this endpoint are sealed, and nothing was changed. Its operator finds out more ' +
    'with ./intray doctor.',
}

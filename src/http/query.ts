// The query of a request: each parameter must be known, given once, and well-formed.

import type { IncomingMessage } from 'node:http'
import type { Problem } from '../model/errors.ts'
import type { Parameter } from '../runtime/parameter.ts'
import type { Call, Operation, Outcome } from './call.ts'
import { invalidRequest } from './problem.ts'
import { hasTokenInQuery } from './wire/head.ts'

type Parameters = Record<string, Parameter<unknown>>
type Values<P extends Parameters> = { readonly [N in keyof P]: ReturnType<P[N]> | undefined }

/** An operation whose query may have these parameters and no others. */
export function withQuery<P extends Parameters>(
  parameters: P,
  work: (call: Call, values: Values<P>) => Outcome | Promise<Outcome>,
): Operation {
  return (call) => {
    const query = readQuery(call.req, parameters)
    return 'problem' in query ? query.problem : work(call, query.values)
  }
}

export function readQuery<P extends Parameters>(
  req: IncomingMessage,
  parameters: P,
): { readonly values: Values<P> } | { readonly problem: Problem } {
  const url = req.url ?? ''
  const at = url.indexOf('?')
  // URLSearchParams removes one leading question mark, so it gets the one that starts the query.
  const given = new URLSearchParams(at === -1 ? '' : url.slice(at))
  const values: Record<string, unknown> = {}
  for (const name of new Set(given.keys())) {
    // The answer does not repeat an unknown name or a value: it may be a token in the wrong place.
    const parse = Object.hasOwn(parameters, name) ? parameters[name] : undefined
    if (!parse) return refuse(unknownParameter(req, Object.keys(parameters)))
    const texts = given.getAll(name)
    if (texts.length > 1) return refuse(`The query holds ${name} more than once. Give it once.`)
    try {
      values[name] = parse(texts[0]!)
    } catch (error) {
      return refuse(`The query parameter ${name} ${(error as Error).message}.`)
    }
  }
  return { values: values as never }
}

function unknownParameter(req: IncomingMessage, known: readonly string[]): string {
  const allowed = known.length === 0 ? 'Leave the query out' : `It takes only ${known.join(', ')}`
  return hasTokenInQuery(req)
    ? `This address takes no token in the query. ${allowed}; send the token in the Authorization header alone.`
    : `The query has a parameter that this address does not know. ${allowed}.`
}

function refuse(message: string): { readonly problem: Problem } {
  return { problem: invalidRequest(message) }
}

// The query of a read route: every parameter is known, given once, and of the form its row asks for.

import type { IncomingMessage } from 'node:http'
import type { Problem } from '../model/errors.ts'
import type { Parameter } from '../runtime/parameter.ts'
import { hasTokenInQuery } from './wire/head.ts'

export type QueryResult<S extends Record<string, Parameter<unknown>>> =
  | { readonly values: { readonly [N in keyof S]: ReturnType<S[N]> | undefined } }
  | { readonly problem: Problem }

export function readQuery<S extends Record<string, Parameter<unknown>>>(req: IncomingMessage, spec: S): QueryResult<S> {
  const url = req.url ?? ''
  const at = url.indexOf('?')
  // With its question mark, which is taken off: of two, the second would be as well.
  const given = new URLSearchParams(at === -1 ? '' : url.slice(at))
  const values: Record<string, unknown> = {}
  for (const name of new Set(given.keys())) {
    // What was sent is never repeated: it may be a token in the wrong place.
    const parse = Object.hasOwn(spec, name) ? spec[name] : undefined
    if (!parse) return refuse(unknownParameter(req, Object.keys(spec)))
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
  return { problem: { code: 'invalid_request', message } }
}

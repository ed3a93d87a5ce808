// The query of a read route: every parameter is known, given once, and of the form its row asks for.

import type { IncomingMessage } from 'node:http'
import type { Problem } from '../model/errors.ts'

/** Reads a parameter; throws with a sentence's second half: `must be …`. */
export type Parameter<T> = (text: string) => T

export type QueryResult<S extends Record<string, Parameter<unknown>>> =
  | { readonly values: { readonly [N in keyof S]: ReturnType<S[N]> | undefined } }
  | { readonly problem: Problem }

export function readQuery<S extends Record<string, Parameter<unknown>>>(req: IncomingMessage, spec: S): QueryResult<S> {
  const url = req.url ?? ''
  const at = url.indexOf('?')
  const given = new URLSearchParams(at === -1 ? '' : url.slice(at + 1))
  const values: Record<string, unknown> = {}
  for (const name of new Set(given.keys())) {
    // What was sent is never repeated: it may be a token in the wrong place.
    const parse = Object.hasOwn(spec, name) ? spec[name] : undefined
    const known = Object.keys(spec).join(', ')
    if (!parse) return refuse(known === '' ? 'This address takes no query.' : `The query may hold only ${known}.`)
    const texts = given.getAll(name)
    if (texts.length > 1) return refuse(`The query holds ${name} more than once. Give it once.`)
    try {
      values[name] = parse(texts[0]!)
    } catch (error) {
      return refuse(`${name} ${(error as Error).message}.`)
    }
  }
  return { values: values as never }
}

function refuse(message: string): { readonly problem: Problem } {
  return { problem: { code: 'invalid_request', message } }
}

export const wholeNumber =
  (min: number, max: number): Parameter<number> =>
  (text) => {
    const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
    if (!(number >= min && number <= max)) throw new Error(`must be a whole number from ${min} to ${max}`)
    return number
  }

export const oneOf =
  <T extends string>(...choices: readonly T[]): Parameter<T> =>
  (text) => {
    const found = choices.find((choice) => choice === text)
    if (found === undefined) throw new Error(`must be one of ${choices.join(', ')}`)
    return found
  }

/** Text that a database can be asked for. */
export const textUpTo =
  (maxUnits: number): Parameter<string> =>
  (text) => {
    if (text === '' || text.length > maxUnits) throw new Error(`must have 1 to ${maxUnits} characters`)
    if (text.includes('\0') || !text.isWellFormed()) throw new Error('must not hold U+0000 or a lone surrogate')
    return text
  }

/** An ISO time with its zone, as milliseconds. */
export const isoMoment: Parameter<number> = (text) => {
  const ms = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2})$/.test(text)
    ? Date.parse(text)
    : Number.NaN
  if (Number.isNaN(ms)) throw new Error('must be a time such as 2026-11-15T12:00:00Z')
  return ms
}

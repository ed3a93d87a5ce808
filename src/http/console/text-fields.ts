// Bodies of the console's commands whose fields are all strings.

import { TOKEN_LIFE_MS } from '../../auth/token-lifecycle.ts'
import { parseDuration } from '../../runtime/duration.ts'
import { type Call, type Operation, type Outcome, readCommand } from '../call.ts'
import { invalidRequest } from '../problem.ts'
import { withQuery } from '../query.ts'

/** An operation whose body may have these fields, all strings. */
export function withTextFields<N extends string>(
  names: readonly N[],
  maxBytes: number,
  work: (call: Call, given: Partial<Record<N, string>>) => Promise<Outcome>,
): Operation {
  return withQuery({}, async (call) => {
    const read = await readCommand(call, maxBytes)
    if ('problem' in read) return read.problem
    const isKnown = ([name, value]: [string, unknown]) => names.includes(name as N) && typeof value === 'string'
    if (!Object.entries(read.body).every(isKnown))
      return invalidRequest(`The body has another field, or one that is not a string. Send only ${names.join(', ')}.`)
    return work(call, read.body as Partial<Record<N, string>>)
  })
}

/** Undefined if absent, null if out of range or malformed. */
export function parseLifetime(text: string | undefined): number | null | undefined {
  if (text === undefined) return undefined
  const ms = parseDuration(text)
  return ms === null || ms < TOKEN_LIFE_MS.min || ms > TOKEN_LIFE_MS.max ? null : ms
}

// Headers that an endpoint adds to its requests: what they may be.

import { ENDPOINT_LIMITS, type HeaderField } from '../../model/endpoint.ts'

const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const VALUE = /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/
/** Ours, or those of the connection: another value would change what a receiver verifies, or how it finds the end of the body. */
const RESERVED =
  /^(host|content-.*|transfer-encoding|connection|keep-alive|upgrade|te|trailer|expect|date|user-agent|traceparent|tracestate|proxy-.*|webhook-.*|intray-.*)$/i

/** Null if the header may be sent; else the second half of a sentence. */
export function headerProblem({ name, value }: Pick<HeaderField, 'name' | 'value'>): string | null {
  if (name.length > ENDPOINT_LIMITS.headerNameUnits || !NAME.test(name)) return 'has a name that no header may have'
  if (RESERVED.test(name)) return `names ${name}, which the service sets`
  if (value.length > ENDPOINT_LIMITS.headerValueUnits || !VALUE.test(value)) {
    return `has a value that is empty, not ASCII, or longer than ${ENDPOINT_LIMITS.headerValueUnits} characters`
  }
  return null
}

/** `Name: value`. Null if there is no colon. */
export function parseHeaderLine(line: string, isSecret: boolean): HeaderField | null {
  const at = line.indexOf(':')
  return at < 1 ? null : { name: line.slice(0, at).trim(), value: line.slice(at + 1).trim(), isSecret }
}

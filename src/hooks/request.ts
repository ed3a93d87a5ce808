// A request to a hook, as the HTTP route and `./intray hook check` have it.

/** In the place of `hook` for a request that came in through none. */
export const HOOK_STAND_IN = 'hook'

export interface HookRequest {
  /** The key id that the hook had before any rotation of its address. */
  readonly hook: string
  /** Path and query, as in the request line: Twilio signs it. */
  readonly target: string
  readonly header: HeaderReader
  /** "" without the header. */
  readonly contentType: string
  readonly payload: Buffer
}

/** By a name in lower case; null if the header is not there. */
export type HeaderReader = (name: string) => string | null

/** Of alternating names and values. A header that is there more than once is a list. */
export function headerReader(rawHeaders: readonly string[]): HeaderReader {
  const headers = new Map<string, string>()
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!.toLowerCase()
    const before = headers.get(name)
    headers.set(name, before === undefined ? rawHeaders[at + 1]! : `${before}, ${rawHeaders[at + 1]}`)
  }
  return (name) => headers.get(name) ?? null
}

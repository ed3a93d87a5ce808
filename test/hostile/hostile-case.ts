// One hostile request: what goes over the wire and what has to come of it.

export interface Expected {
  readonly status: number
  /** The code of an error; null for an answer that is none. */
  readonly error: string | null
  /** HEAD and 204. */
  readonly bodiless?: boolean
  /** Where two things are wrong and which is seen first depends on how the bytes arrive. */
  readonly or?: Expected
}

export interface HostileCase {
  readonly name: string
  /** Each a write of its own. */
  readonly pieces: readonly Buffer[]
  /** All of them, in order: one more is a second message out of one. */
  readonly answers: readonly Expected[]
  /** The payloads that are stored, in the order of the answers that carry an id. */
  readonly stored: readonly Buffer[]
  /** `either`: as the answer says, which is checked. */
  readonly connection: 'kept' | 'closed' | 'either'
  /** Whole requests with a broken one behind: that one may still be answered, if the others have been by then. */
  readonly mayAddBroken?: boolean
  /** What else is wrong with an answer that is 200, if anything. */
  readonly check?: (body: string) => string | null
}

export const refusal = (status: number, error: string): Expected => ({ status, error })

export const BROKEN = refusal(400, 'invalid_request')

/** A request line, header lines and a body, as they are: latin1, so that every byte can be written. */
export function wireOf(line: string, headers: readonly string[], body: Buffer = Buffer.alloc(0)): Buffer {
  return Buffer.concat([
    Buffer.from(`${line}\r\n${headers.map((header) => `${header}\r\n`).join('')}\r\n`, 'latin1'),
    body,
  ])
}

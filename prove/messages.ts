// What the client sends: messages with bytes of their own that no re-encoding would leave alone.
// Promises: no two messages have the same bytes; every one names itself in them.

import type { Random } from './random.ts'

export interface Message {
  readonly number: number
  readonly ref: string | null
  readonly key: string | null
  readonly channel: string | null
  readonly conflictsWith: number | null
  readonly body: Buffer
}

/**
 * How a message is distinguished from its copy: by source_ref, by Idempotency-Key, not at all; `broken` is refused.
 * In a hundred messages; the rest has a source_ref.
 */
export interface Mix {
  readonly keyed: number
  readonly bare: number
  readonly broken: number
  /** Of a hundred acknowledged messages so many are sent again, as they were or with other bytes. */
  readonly again: number
  readonly conflicting: number
}

export const USUAL: Mix = { keyed: 20, bare: 0, broken: 3, again: 5, conflicting: 3 }
/** Nothing that a service could recognise a copy by. */
export const ALL_BARE: Mix = { keyed: 0, bare: 100, broken: 0, again: 0, conflicting: 0 }

const PIECES = [
  '\\u00e9',
  'é',
  '🙂',
  'e\u0301',
  '漢字',
  '\\n',
  '\\"',
  'ﬀ',
  '\u200f',
  'plain words ',
  '\\ud83d\\ude42',
  '\u2028',
]
const NUMBERS = [
  '12345678901234567890',
  '1.0',
  '1e400',
  '-0',
  '0.1000000000000000055511151231257827',
  '9007199254740993',
]

export class Messages {
  readonly #random: Random
  readonly #mix: Mix
  readonly #maxTextPieces: number
  readonly #conversations: number
  readonly #name: string
  #count = 0

  constructor(random: Random, mix: Mix, { name = 'prove', maxTextPieces = 200, conversations = 8 } = {}) {
    this.#random = random
    this.#mix = mix
    this.#name = name
    this.#maxTextPieces = maxTextPieces
    this.#conversations = conversations
  }

  get count(): number {
    return this.#count
  }

  next(): Message {
    const number = ++this.#count
    const { keyed, bare, broken } = this.#mix
    const draw = this.#random.below(100)
    const label = `${this.#name}:${number}`
    const hasRef = draw >= keyed + bare
    const ref = hasRef ? label : null
    const key = draw < keyed ? `key-${label}` : null
    const channel = this.#random.percent(90) ? `${this.#name}/${this.#random.below(this.#conversations)}` : null
    const body = this.#body(label, ref, channel)
    const isBroken = hasRef && draw >= 100 - broken
    // Cut inside the last string: no parser takes it.
    return { number, ref, key, channel, conflictsWith: null, body: isBroken ? body.subarray(0, -4) : body }
  }

  /** Other bytes under the reference of a message. */
  conflicting(with_: Message): Message {
    const number = ++this.#count
    const { ref, channel } = with_
    const body = this.#body(`${this.#name}:${number}`, ref, channel)
    return { number, ref, key: null, channel, conflictsWith: with_.number, body }
  }

  #body(label: string, ref: string | null, channel: string | null): Buffer {
    const random = this.#random
    const pieces = Array.from({ length: 1 + random.below(this.#maxTextPieces) }, () => random.pick(PIECES))
    const fields = [
      `"n" : ${random.pick(NUMBERS)}`,
      `"n":${random.below(1e9)}`,
      ...(ref === null ? [] : [`"source_ref":${JSON.stringify(ref)}`]),
      ...(channel === null ? [] : [`"channel_ref" :${JSON.stringify(channel)}`]),
      `"message":{"type":"text","text":"${pieces.join('')}"}`,
      `"label":"${label}"`,
    ]
    return Buffer.from(` {${fields.join(random.pick([',', ', ', '\n,\t']))} }`)
  }
}

// HMAC signatures: over the body as sent, alone or with a time and other places of the request.

import { createHmac, type Hmac } from 'node:crypto'
import type { BodyReader } from '../model/recipes/body-reader.ts'
import type { CompiledRecipe } from '../model/recipes/compiled.ts'
import type { HmacRule, SignedPlace } from '../model/recipes/recipe.ts'
import { firstComplete, readPlace } from '../model/recipes/refs.ts'
import type { Place, Template } from '../model/recipes/template.ts'
import { keyOf } from '../model/recipes/hook-secret.ts'
import type { HookRequest } from './request.ts'
import { decodeSignature, equalSignatures } from './secret-comparison.ts'
import { refused, type SignatureCheck, type SignatureContext, type SignatureVerdict } from './signature-verdict.ts'

const DIGEST_BYTES = { sha1: 20, sha256: 32, sha512: 64 } as const
/** Of signatures in one header, and of secrets: a rotation has two. */
const MAX_SIGNATURES = 8
const MAX_SECRETS = 8

export class HmacCheck implements SignatureCheck {
  readonly #rule: HmacRule
  readonly #request: HookRequest
  readonly #body: BodyReader
  #verdict: SignatureVerdict | null = null
  #given: readonly Buffer[] = []
  /** One for each secret; null for a key without bytes, with which anyone could sign. */
  #hmacs: readonly (Hmac | null)[] = []
  /** What is still to be signed. */
  #rest: (Buffer | string)[] = []
  #at = 0

  constructor(
    compiled: CompiledRecipe,
    rule: HmacRule,
    request: HookRequest,
    body: BodyReader,
    context: SignatureContext,
  ) {
    this.#rule = rule
    this.#request = request
    this.#body = body
    this.#verdict = this.#prepare(compiled, context)
  }

  get isDone(): boolean {
    return this.#verdict !== null
  }

  get verdict(): SignatureVerdict {
    return this.#verdict!
  }

  /** Returns how many bytes were signed, each as often as there are secrets. */
  run(maxBytes: number): number {
    const each = Math.max(1, Math.floor(maxBytes / this.#hmacs.length))
    let signed = 0
    while (this.#verdict === null && signed < each) signed += this.#sign(each - signed)
    return signed * this.#hmacs.length
  }

  /** Null if the HMAC decides. */
  #prepare(compiled: CompiledRecipe, context: SignatureContext): SignatureVerdict | null {
    const rule = this.#rule
    const place = placeNames(rule.signature.in)
    const texts = this.#parts(compiled.signature, rule.signature)
    if (texts === null)
      return refused('missing_signature', `The signature is missing in ${place}. Set the secret at the sender.`)
    const bytes = DIGEST_BYTES[rule.algorithm]
    this.#given = texts.slice(0, MAX_SIGNATURES).flatMap((text) => decodeSignature(text, rule.encoding, bytes) ?? [])
    if (this.#given.length === 0)
      return refused(
        'malformed_signature',
        `The signature in ${place} is none of ${rule.algorithm} in ${rule.encoding}.`,
      )
    const timestamp = this.#timestamp(compiled, context.now)
    if (typeof timestamp === 'object') return timestamp
    const signed = this.#signedParts(compiled.signs, timestamp)
    if (signed === null)
      return refused('malformed_signature', `The request lacks a part of what is signed: ${placeNames(rule.signs)}.`)
    this.#rest = signed
    const keys = context.secrets.slice(0, MAX_SECRETS).map((secret) => keyOf(rule, secret))
    this.#hmacs = keys.map((key) => (key.length === 0 ? null : createHmac(rule.algorithm, key)))
    return null
  }

  /** As sent, or why not. */
  #timestamp(compiled: CompiledRecipe, now: number): string | SignatureVerdict {
    const rule = this.#rule.timestamp
    if (!rule) return ''
    const [text] = this.#parts(compiled.timestamp, rule) ?? []
    const place = placeNames(rule.in)
    if (text === undefined || !/^\d{1,12}$/.test(text))
      return refused('missing_timestamp', `The time in ${place} is missing, or no number of seconds.`)
    const ageS = Math.floor(now / 1000) - Number(text)
    const limit = `more than ${rule.toleranceS} s`
    if (ageS > rule.toleranceS)
      return refused('old_timestamp', `The time in ${place} is ${limit} ago. Check the clock of this machine.`)
    if (-ageS > rule.toleranceS)
      return refused('future_timestamp', `The time in ${place} is ${limit} ahead. Check the clock of this machine.`)
    return text
  }

  /** Of a list, those with the prefix, without it. Null if there are none. */
  #parts(templates: readonly Template[], { separator, prefix = '' }: SignedPlace): string[] | null {
    const text = firstComplete(templates, (place) => this.#read(place))
    if (text === null) return null
    const parts = (separator === undefined ? [text] : text.split(separator, MAX_PARTS)).map((part) => part.trim())
    const found = parts.filter((part) => part.startsWith(prefix)).map((part) => part.slice(prefix.length))
    return found.length === 0 ? null : found
  }

  /** The first complete template, with the body as sent. */
  #signedParts(templates: readonly Template[], timestamp: string): (Buffer | string)[] | null {
    for (const template of templates) {
      const parts = template.map((part) => {
        if (typeof part === 'string') return part
        if (part.from === 'body') return this.#request.payload
        return part.from === 'timestamp' ? timestamp : this.#read(part)
      })
      if (parts.every((part) => part !== null)) return parts
    }
    return null
  }

  #read(place: Place): string | null {
    return readPlace(place, this.#body, { header: this.#request.header, hook: null, sha256: () => '' })
  }

  #sign(maxBytes: number): number {
    const part = this.#rest[0]
    if (part === undefined) {
      this.#decide()
      return 0
    }
    const slice = typeof part === 'string' ? part : part.subarray(this.#at, this.#at + maxBytes)
    for (const hmac of this.#hmacs) hmac?.update(slice)
    this.#at += slice.length
    if (this.#at >= part.length) {
      this.#rest.shift()
      this.#at = 0
    }
    return slice.length
  }

  #decide(): void {
    const secret = this.#hmacs
      .map((hmac) => hmac?.digest() ?? null)
      .findIndex((digest) => digest !== null && this.#given.some((given) => equalSignatures(given, digest)))
    const place = placeNames(this.#rule.signature.in)
    this.#verdict =
      secret === -1
        ? refused(
            'wrong_signature',
            `The signature in ${place} does not fit the body and the hook's secret. Check that the secret is the one of the sender, and that nothing between changes the body.`,
          )
        : { ok: true, secret }
  }
}

/** Of a list in a header. */
const MAX_PARTS = 32

/** For people: `the header x-signature`. */
function placeNames(templates: readonly string[]): string {
  return templates
    .map((template) =>
      template
        .replace(/\{header:([^}]*)\}/g, 'the header $1')
        .replace(/\{form:([^}]*)\}/g, 'the field $1')
        .replace(/\{(\/[^}]*)\}/g, '$1'),
    )
    .join(' or ')
}

// Twilio's signature: HMAC-SHA1 in base64 over the public URL that Twilio called, followed by the form's fields, sorted by name, each name
// and value. A body that is no form is signed by its SHA-256 in the query parameter bodySHA256.

import { createHash, createHmac, type Hash } from 'node:crypto'
import { mediaTypeOf } from '../model/recipes/body-kind.ts'
import { readFormField } from '../model/recipes/form-fields.ts'
import type { HookRequest } from './request.ts'
import { decodeSignature, equalSignatures } from './secret-comparison.ts'
import { refused, type SignatureCheck, type SignatureContext, type SignatureVerdict } from './signature-verdict.ts'

const HEADER = 'x-twilio-signature'
/** Of a form: all of it is sorted and signed in one go. A message has 1,600 characters; a form of Twilio is a few KiB. */
export const MAX_SIGNED_FORM_BYTES = 64 * 1024
/** Fields are sorted as objects, which takes longer than their bytes. A message of Twilio has about 30. */
export const MAX_SIGNED_FIELDS = 1000
const AMPERSAND = 0x26
const SHA1_BYTES = 20

export class TwilioCheck implements SignatureCheck {
  readonly #request: HookRequest
  readonly #context: SignatureContext
  readonly #isForm: boolean
  /** Of a body that is no form. */
  readonly #hash: Hash = createHash('sha256')
  #hashed = 0
  #verdict: SignatureVerdict | null = null

  constructor(request: HookRequest, context: SignatureContext) {
    this.#request = request
    this.#context = context
    this.#isForm = mediaTypeOf(request.contentType) === 'application/x-www-form-urlencoded'
  }

  get isDone(): boolean {
    return this.#verdict !== null
  }

  get verdict(): SignatureVerdict {
    return this.#verdict!
  }

  /** A form in one go: what may be signed is bounded. */
  run(maxBytes: number): number {
    const { payload } = this.#request
    if (this.#isForm || this.#hashed === payload.length) {
      this.#verdict = this.#check()
      return this.#isForm ? payload.length : 0
    }
    const slice = payload.subarray(this.#hashed, this.#hashed + maxBytes)
    this.#hash.update(slice)
    this.#hashed += slice.length
    return slice.length
  }

  #check(): SignatureVerdict {
    const { payload } = this.#request
    const given = this.#request.header(HEADER)
    if (given === null)
      return refused('missing_signature', `The header ${HEADER} is missing. Only Twilio can send to this hook.`)
    const signature = decodeSignature(given, 'base64', SHA1_BYTES)
    if (signature === null) return refused('malformed_signature', `The header ${HEADER} is no SHA-1 in base64.`)
    if (this.#context.publicUrl === null)
      return refused('no_public_url', 'INTRAY_PUBLIC_URL is not set. Set it to the address that Twilio calls.')
    if (this.#isForm && payload.length > MAX_SIGNED_FORM_BYTES)
      return refused('too_large', `The form has more than ${MAX_SIGNED_FORM_BYTES} bytes, which Twilio does not send.`)
    if (this.#isForm && hasMoreThan(payload, AMPERSAND, MAX_SIGNED_FIELDS - 1))
      return refused('too_large', `The form has more than ${MAX_SIGNED_FIELDS} fields, which Twilio does not send.`)
    const bodySha256 = queryParameter(this.#request.target, 'bodySHA256')
    if (!this.#isForm && bodySha256?.toLowerCase() !== this.#hash.digest('hex'))
      return refused('wrong_signature', 'The parameter bodySHA256 of the URL is not the SHA-256 of the body.')
    const fields = this.#isForm ? signedFields(payload) : ''
    const secret = this.#context.secrets.findIndex(
      (one) =>
        one !== '' &&
        this.#urls(this.#context.publicUrl!).some((url) =>
          equalSignatures(
            createHmac('sha1', one)
              .update(url + fields)
              .digest(),
            signature,
          ),
        ),
    )
    if (secret !== -1) return { ok: true, secret }
    return refused(
      'wrong_signature',
      `The header ${HEADER} does not fit. Check that the secret is the primary auth token, and that INTRAY_PUBLIC_URL is the address that Twilio calls.`,
    )
  }

  /** Twilio signs the URL with or without the port, depending on the product. */
  #urls(publicUrl: string): readonly string[] {
    const { target } = this.#request
    const url = publicUrl.replace(/\/+$/, '')
    const [, scheme = '', host = '', port, path = ''] = /^(https?:\/\/)([^/]*?)(?::(\d+))?(\/.*)?$/i.exec(url) ?? []
    if (host === '') return [url + target]
    const usual = scheme.toLowerCase() === 'https://' ? '443' : '80'
    return [`${scheme}${host}${path}${target}`, `${scheme}${host}:${port ?? usual}${path}${target}`]
  }
}

/** Sorted by name. Of a repeated name each value once, sorted, as Twilio's library does. */
function signedFields(payload: Buffer): string {
  const fields = new Map<string, Set<string>>()
  for (let at = 0; at < payload.length; ) {
    const { field, next } = readFormField(payload, at)
    if (next > at + 1) fields.set(field.name, (fields.get(field.name) ?? new Set()).add(field.value()))
    at = next
  }
  return Array.from(fields.keys())
    .sort()
    .map((name) =>
      Array.from(fields.get(name)!)
        .sort()
        .map((value) => name + value)
        .join(''),
    )
    .join('')
}

function hasMoreThan(bytes: Buffer, byte: number, max: number): boolean {
  let count = 0
  for (let at = bytes.indexOf(byte); at !== -1 && count <= max; at = bytes.indexOf(byte, at + 1)) count += 1
  return count > max
}

function queryParameter(target: string, name: string): string | null {
  const at = target.indexOf('?')
  return at === -1 ? null : new URLSearchParams(target.slice(at + 1)).get(name)
}

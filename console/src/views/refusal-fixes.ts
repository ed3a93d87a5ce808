// For each code of a refusal, why the request was refused and how to fix it.

import { isFailure, scanJson } from '../json/scan.ts'

export interface Fix {
  readonly why: string
  readonly fix: string
}

const FIXES: Readonly<Record<string, Fix>> = {
  invalid_json: {
    why: 'The body is not one JSON object in UTF-8.',
    fix: 'Send json_encode($data) or JSON.stringify(data) of an object, not form fields or a string built by hand.',
  },
  invalid_payload: {
    why: 'source_ref or channel_ref is neither a string nor an integer, is too long, or has a character that is not allowed.',
    fix: 'Send both as strings of at most 512 characters without U+0000, or as integers, or leave them out.',
  },
  unsupported_media_type: {
    why: 'The Content-Type is not one that JSON is sent with.',
    fix: 'Set the header Content-Type: application/json.',
  },
  unsupported_encoding: {
    why: 'The Content-Encoding is not gzip.',
    fix: 'Send the body uncompressed, or with Content-Encoding: gzip.',
  },
  payload_too_large: {
    why: 'The body is larger than this server takes.',
    fix: 'Send links instead of attachments, or raise INTRAY_MAX_BODY_BYTES.',
  },
  forbidden_scope: {
    why: 'The scope of the token does not allow this call.',
    fix: 'Send with a token whose scope may send. Create one under Tokens.',
  },
}

/** Of requests to a hook. */
const HOOK_FIXES: Readonly<Record<string, Fix>> = {
  invalid_signature: {
    why: 'The signature is not that of the secret of this hook.',
    fix: 'Compare the secret at the vendor with that of the hook, and let the vendor send it again.',
  },
  unsupported_media_type: {
    why: 'The recipe of the hook takes no body of this Content-Type.',
    fix: 'Set the vendor up to send one that it takes, or use a recipe of your own.',
  },
  payload_too_large: {
    why: 'The body is larger than this hook takes.',
    fix: 'Raise INTRAY_MAX_BODY_BYTES, or create a hook with a larger body limit.',
  },
}

export function isOfHook({ route }: { readonly route: string }): boolean {
  return route.startsWith('/v1/hooks/')
}

const FORM: Fix = {
  why: 'The body is a form, not JSON.',
  fix: 'Make one JSON object of its fields, and send it with the header Content-Type: application/json. The header alone does not help.',
}
const FORM_TYPE = /^(?:application\/x-www-form-urlencoded|multipart\/)/i

interface Refused {
  readonly error: string
  readonly route: string
  readonly reason: string | null
  readonly headers: Readonly<Record<string, string>>
}

export function fixForRefusal(refusal: Refused): Fix {
  const { error, reason, headers } = refusal
  const known = fixFor(error, headers['content-type'])
  if (!isOfHook(refusal)) return known
  const { why, fix } = HOOK_FIXES[error] ?? known
  return { why: reason ?? why, fix }
}

/** `contentType`: as sent. */
export function fixFor(code: string, contentType = ''): Fix {
  if (code === 'unsupported_media_type' && FORM_TYPE.test(contentType)) return FORM
  return FIXES[code] ?? { why: `The request was refused with ${code}.`, fix: 'The code is explained at /docs.' }
}

/** Why the text is not a JSON object, or null if it is one. */
export function jsonObjectProblem(text: string): string | null {
  const scanned = scanJson(text)
  if (isFailure(scanned)) return `Line ${scanned.line}, column ${scanned.column}: ${scanned.message}.`
  const first = scanned[0]!
  return text[first.from] === '{' ? null : 'The text is JSON, but not an object. It must begin with {.'
}

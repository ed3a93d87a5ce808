// Why a request was refused and what to change, in a sentence each, for the codes that are kept as refusals.

import { isFailure, scanJson } from '../json/scan.ts'

export interface Fix {
  readonly why: string
  readonly fix: string
}

const FIXES: Readonly<Record<string, Fix>> = {
  invalid_json: {
    why: 'The body is not one JSON object in UTF-8.',
    fix: 'Send json_encode($data) or JSON.stringify(data) of an object, not form fields and not text put together by hand.',
  },
  invalid_payload: {
    why: 'source_ref or channel_ref cannot be used.',
    fix: 'Send both as text of at most 512 characters without U+0000, or leave them out.',
  },
  unsupported_media_type: {
    why: 'The Content-Type is not application/json.',
    fix: 'Set the header Content-Type: application/json.',
  },
  unsupported_encoding: {
    why: 'The body is compressed in a way that is not understood.',
    fix: 'Send it as it is, or with Content-Encoding: gzip.',
  },
  payload_too_large: {
    why: 'The body is larger than this server takes.',
    fix: 'Leave out attachments, or send a link to them; or raise INTRAY_MAX_BODY_BYTES.',
  },
  forbidden_scope: {
    why: 'The scope of the token may not do this.',
    fix: 'Send with a token whose scope may send: make one under Tokens.',
  },
}

export function fixFor(code: string): Fix {
  return (
    FIXES[code] ?? {
      why: `The request was refused with ${code}.`,
      fix: 'The code is explained in docs/sending/errors.md.',
    }
  )
}

/** What stops the text from being accepted, or null. */
export function whatIsWrong(text: string): string | null {
  const scanned = scanJson(text)
  if (isFailure(scanned)) return `Line ${scanned.line}, column ${scanned.column}: ${scanned.message}.`
  const first = scanned[0]!
  return text[first.from] === '{' ? null : 'It is JSON, but not an object: it must begin with {.'
}

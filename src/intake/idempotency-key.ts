// Parses the Idempotency-Key header, the dedupe key of a message without source_ref: quoted (the IETF draft) or bare (most
// clients), 1 to 255 printable ASCII characters. The key is stored, so one with a token in it is replaced by its SHA-256, which
// tells messages apart as well.

import { hash } from 'node:crypto'
import { hasToken } from '../runtime/redact.ts'

const MAX_IDEMPOTENCY_KEY = 255

export type IdempotencyKey = { readonly key: string | null } | { readonly unusable: string }

export function readIdempotencyKey(values: readonly string[]): IdempotencyKey {
  const [value = '', ...more] = values
  if (more.length > 0) return { unusable: 'The Idempotency-Key header is there more than once. Send it once.' }
  const bare = value.trim()
  const quoted = /^"((?:[^"\\]|\\["\\])*)"$/.exec(bare)
  const key = quoted ? quoted[1]!.replace(/\\(["\\])/g, '$1') : bare
  if (key.trim() === '') return { key: null }
  if (key.length > MAX_IDEMPOTENCY_KEY) {
    return {
      unusable: `The Idempotency-Key header is longer than ${MAX_IDEMPOTENCY_KEY} characters. Shorten it, or send a hash of it.`,
    }
  }
  if (!/^[\x20-\x7e]+$/.test(key)) {
    return { unusable: 'The Idempotency-Key header is not printable ASCII. Encode it, or send a hash of it.' }
  }
  return { key: hasToken(key) ? `sha256:${hash('sha256', key)}` : key }
}

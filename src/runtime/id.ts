// Generates identifiers: time-ordered UUIDs and unbiased base62 strings.

import { randomBytes, randomUUIDv7 } from 'node:crypto'

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** A UUIDv7: ordered by time, so that an index over them grows at its end. */
export function newUuid(): string {
  return randomUUIDv7()
}

/** Random base62 text. Bytes above 247 are rejected, because a plain modulo would favour the first letters. */
export function randomBase62(length: number): string {
  let text = ''
  while (text.length < length) {
    for (const byte of randomBytes(length * 2)) {
      if (byte < 248 && text.length < length) text += BASE62[byte % 62]
    }
  }
  return text
}

/** A number below 62 ** length, written in base62 and padded with zeros. */
export function base62(value: number, length: number): string {
  let text = ''
  for (let i = 0; i < length; i++) {
    text = BASE62[value % 62] + text
    value = Math.floor(value / 62)
  }
  return text
}

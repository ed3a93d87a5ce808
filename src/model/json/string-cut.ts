// Decodes the beginning of a JSON string: a long one is cut between two characters, because decoding all of it would take milliseconds.

import { stringAt } from './field-names.ts'
import { endOfText } from './string-text.ts'

/** `start` and `end` include the quotation marks. */
export function cutJsonString(bytes: Buffer, start: number, end: number, maxBytes: number): string {
  if (end - start <= maxBytes) return stringAt(bytes, start, end)
  let to = endOfText(bytes, start + 1, start + maxBytes)
  while (to > start + 1 && (bytes[to]! & 0xc0) === 0x80) to -= 1
  const text = bytes.toString('utf8', start + 1, to)
  return text.includes('\\') ? (JSON.parse(`"${text}"`) as string) : text
}

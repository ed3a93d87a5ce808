// A line of an export: a JSON object whose last field is the SHA-256 of the line before that field. So a changed byte is found in
// the line where it is.

import { hash } from 'node:crypto'

const FIELD = ',"line_sha256":"'
const END = '"}'
const DIGEST_LENGTH = 64
const SUFFIX_LENGTH = FIELD.length + DIGEST_LENGTH + END.length

/** Without the line break. `fields` has at least one. */
export function sealedLine(fields: object): string {
  const body = JSON.stringify(fields).slice(0, -1)
  return `${body}${FIELD}${hash('sha256', body)}${END}`
}

/** The fields of a line; null if it is not as it was written. */
export function openedLine(line: Buffer): Readonly<Record<string, unknown>> | null {
  const body = line.subarray(0, -SUFFIX_LENGTH)
  if (line.toString('latin1', body.length) !== `${FIELD}${hash('sha256', body)}${END}`) return null
  try {
    const fields: unknown = JSON.parse(`${body.toString()}}`)
    return typeof fields === 'object' && fields !== null ? (fields as Record<string, unknown>) : null
  } catch {
    return null
  }
}

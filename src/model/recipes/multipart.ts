// Reads the parts of multipart/form-data (RFC 7578) one after the other. Total: what is no such body has no parts.

import { mediaParameter } from './body-kind.ts'
import { type FormField, MAX_VALUE_BYTES } from './form-fields.ts'

const MAX_HEAD_BYTES = 8192

/** The line between parts; null if the content type names none. */
export function partSeparator(contentType: string): Buffer | null {
  const boundary = mediaParameter(contentType, 'boundary')
  return boundary === null || boundary === '' || boundary.length > 70 ? null : Buffer.from(`--${boundary}`, 'latin1')
}

/** Where the first part begins; the end of the bytes if nowhere. */
export function firstPart(bytes: Buffer, separator: Buffer): number {
  const at = bytes.indexOf(separator)
  return at === -1 ? bytes.length : at + separator.length
}

/** Gives the part behind a separator that ends at `at`, and where the next separator ends. Null behind the last one. */
export function readPart(
  bytes: Buffer,
  at: number,
  separator: Buffer,
): { readonly field: FormField; readonly next: number } | null {
  if (at + 2 > bytes.length || bytes.toString('latin1', at, at + 2) === '--') return null
  const lineEnd = bytes.indexOf('\r\n', at)
  if (lineEnd === -1) return null
  const found = bytes.indexOf(Buffer.concat([LINE_BREAK, separator]), lineEnd)
  const end = found === -1 ? bytes.length : found
  const next = found === -1 ? bytes.length : found + LINE_BREAK.length + separator.length
  // From the line break before it: a part may have no headers.
  const headEnd = bytes.subarray(lineEnd, Math.min(end, lineEnd + MAX_HEAD_BYTES)).indexOf(BLANK_LINE)
  if (headEnd === -1) return { field: NO_FIELD, next }
  const head = bytes.toString('utf8', lineEnd + 2, lineEnd + headEnd)
  const disposition = /^content-disposition:[^\r\n]*/im.exec(head)?.[0] ?? ''
  const name = parameterOf(disposition, 'name')
  if (name === null) return { field: NO_FIELD, next }
  const isFile = /;[ \t]*filename\*?=/i.test(disposition)
  const from = lineEnd + headEnd + BLANK_LINE.length
  const value = () => bytes.toString('utf8', from, Math.max(from, Math.min(end, from + MAX_VALUE_BYTES)))
  return { field: { name, value, isFile }, next }
}

/** Browsers escape a quotation mark as %22, others as \". */
function parameterOf(disposition: string, name: string): string | null {
  const match = new RegExp(`;[ \\t]*${name}=(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s;"]+))`, 'i').exec(disposition)
  if (!match) return null
  return match[1] === undefined ? match[2]! : match[1].replace(/\\(["\\])/g, '$1').replaceAll('%22', '"')
}

const LINE_BREAK = Buffer.from('\r\n')
const BLANK_LINE = Buffer.from('\r\n\r\n')
const NO_FIELD: FormField = { name: '', value: () => '', isFile: true }

// Extracts the documented fields of a payload. Total: every payload that intake accepts gives storable values, and a
// field of an unexpected type becomes a warning, not an error.
//
// The extracted copies are for search and display; the payload's bytes are authoritative.

import type { Warning } from './event.ts'
import type { JsonScan } from './json/scan.ts'
import { CONTACT_EMAIL, CONTACT_NAME, MESSAGE_TEXT, MESSAGE_TYPE, scanWhole, warningsOf } from './message-scan.ts'

export const EXTRACT_LIMITS = { email: 320, name: 256, type: 64, text: 16_384, snippet: 200 } as const

export interface Extract {
  readonly contactName: string | null
  readonly contactEmail: string | null
  readonly messageType: string | null
  /** The message's text up to a limit: search words are taken from it. */
  readonly text: string | null
  readonly snippet: string | null
  readonly warnings: readonly Warning[]
}

const MORE_THAN_SPACES = /\s\s|[^\S ]/

/** `scan`: of the payload, and done. Throws only if the bytes are not a JSON object, which intake does not accept. */
export function extract(payload: Uint8Array, scan: JsonScan = scanWhole(payload)): Extract {
  // Up to its limit a scan may have seen nothing but white space.
  if (scan.problem !== null || !(scan.isObject || scan.isCut)) throw new SyntaxError('not a JSON object')
  const textOf = (field: number, maxUnits: number): string | null =>
    scan.typeOf(field) === 'string' ? storable(scan.stringOf(field), maxUnits) : null
  const text = textOf(MESSAGE_TEXT, EXTRACT_LIMITS.text)
  const contactName = textOf(CONTACT_NAME, EXTRACT_LIMITS.name)
  const contactEmail = textOf(CONTACT_EMAIL, EXTRACT_LIMITS.email)
  return {
    contactName,
    contactEmail,
    messageType: textOf(MESSAGE_TYPE, EXTRACT_LIMITS.type),
    text,
    snippet: text === null ? null : storable(oneLine(text), EXTRACT_LIMITS.snippet),
    warnings: warningsOf(scan),
  }
}

/** Collapses white space to single spaces. */
export function oneLine(text: string): string {
  return (MORE_THAN_SPACES.test(text) ? text.replace(/\s+/g, ' ') : text).trim()
}

/** Text that every database can store: no U+0000, no lone surrogate, cut without splitting a surrogate pair. */
export function storable(text: string, maxUnits: number): string {
  if (text.length <= maxUnits && !text.includes('\0') && text.isWellFormed()) return text
  let cut = text.length > maxUnits ? text.slice(0, maxUnits) : text
  if (cut.length < text.length && /[\uD800-\uDBFF]$/.test(cut)) cut = cut.slice(0, -1)
  return cut.replaceAll('\0', '\uFFFD').toWellFormed()
}

// What Intray looks for in the body of a message: the references, the documented fields, and warnings for what is not as
// documented. A warning never refuses a message.

import type { Warning } from './event.ts'
import { FieldNames, NO_FIELD } from './json/field-names.ts'
import { JsonScan } from './json/scan.ts'

/** The numbers of the fields. */
export const SOURCE_REF = 0
export const CHANNEL_REF = 1
const CONTACT = 2
export const CONTACT_NAME = 3
export const CONTACT_EMAIL = 4
const MESSAGE = 5
export const MESSAGE_TYPE = 6
export const MESSAGE_TEXT = 7
const META = 8
const META_FORM_ID = 9
const META_PAGE_URL = 10
const LIKE_SOURCE_REF = 11
const LIKE_CHANNEL_REF = 12

const MESSAGE_FIELDS = new FieldNames([
  // sourceRef, source-ref, SourceRef: a sender who writes these has no deduplication, and should know.
  { key: 'source_ref', within: NO_FIELD, lookAlike: LIKE_SOURCE_REF },
  { key: 'channel_ref', within: NO_FIELD, lookAlike: LIKE_CHANNEL_REF },
  { key: 'contact', within: NO_FIELD },
  { key: 'name', within: CONTACT },
  { key: 'email', within: CONTACT },
  { key: 'message', within: NO_FIELD },
  { key: 'type', within: MESSAGE },
  { key: 'text', within: MESSAGE },
  { key: 'meta', within: NO_FIELD },
  { key: 'form_id', within: META },
  { key: 'page_url', within: META },
])

const EXPECTED = [
  { field: CONTACT, path: '/contact', expected: 'object' },
  { field: CONTACT_NAME, path: '/contact/name', expected: 'string' },
  { field: CONTACT_EMAIL, path: '/contact/email', expected: 'string' },
  { field: MESSAGE, path: '/message', expected: 'object' },
  { field: MESSAGE_TYPE, path: '/message/type', expected: 'string' },
  { field: MESSAGE_TEXT, path: '/message/text', expected: 'string' },
  { field: META, path: '/meta', expected: 'object' },
  { field: META_FORM_ID, path: '/meta/form_id', expected: 'integer' },
  { field: META_PAGE_URL, path: '/meta/page_url', expected: 'string' },
] as const
const LOOK_ALIKES = [
  { field: LIKE_SOURCE_REF, expected: 'source_ref' },
  { field: LIKE_CHANNEL_REF, expected: 'channel_ref' },
] as const

/** No double has as many digits before its point; a number that takes more is not looked at. */
const MAX_NUMBER_BYTES = 400

/** `maxBytes`: the limit of the scan, for a payload that intake has accepted. */
export function scanMessage(payload: Uint8Array, maxBytes?: number): JsonScan {
  return new JsonScan(payload, MESSAGE_FIELDS, maxBytes)
}

/** Scans in one go. */
export function scanWhole(payload: Uint8Array, maxBytes?: number): JsonScan {
  const scan = scanMessage(payload, maxBytes)
  while (!scan.isDone) scan.run(Number.MAX_SAFE_INTEGER)
  return scan
}

/** For a scan that is done. A field that is null counts as absent. */
export function warningsOf(scan: JsonScan): readonly Warning[] {
  const warnings: Warning[] = []
  for (const { field, path, expected } of EXPECTED) {
    const got = scan.typeOf(field)
    if (got === null || got === 'null' || got === expected) continue
    if (expected === 'integer' && got === 'number' && isInteger(scan, field)) continue
    warnings.push({ path, expected, got })
  }
  for (const { field, expected } of LOOK_ALIKES) {
    if (scan.typeOf(field) === null) continue
    const key = scan.keyOf(field)
    warnings.push({ path: `/${key}`, expected, got: key })
  }
  return warnings.length === 0 ? NO_WARNINGS : warnings
}

const NO_WARNINGS: readonly Warning[] = Object.freeze([])

function isInteger(scan: JsonScan, field: number): boolean {
  const [text = ''] = /^[\d.eE+-]*/.exec(scan.sourceOf(field, MAX_NUMBER_BYTES)) ?? []
  return text.length < MAX_NUMBER_BYTES && Number.isInteger(Number(text))
}

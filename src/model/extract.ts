// Extracts the documented fields of a payload. Total: every payload that intake accepts gives storable values, and a
// field of an unexpected type becomes a warning, not an error.
//
// The extracted copies are for search and display; the payload's bytes are authoritative.

import type { Warning } from './event.ts'

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

type Json = Record<string, unknown>

const MORE_THAN_SPACES = /\s\s|[^\S ]/

/** Throws only if the bytes are not a JSON object, which intake does not accept. */
export function extract(payload: Uint8Array): Extract {
  const body = parseObject(payload)
  const warnings: Warning[] = []
  const contact = objectAt(body, 'contact', '', warnings)
  const message = objectAt(body, 'message', '', warnings)
  const meta = objectAt(body, 'meta', '', warnings)
  const text = textAt(message, 'text', '/message', EXTRACT_LIMITS.text, warnings)
  if (meta) {
    const formId = own(meta, 'form_id')
    if (formId !== null && !Number.isInteger(formId)) warnings.push(unexpected('/meta/form_id', 'integer', formId))
    textAt(meta, 'page_url', '/meta', 0, warnings)
  }
  const contactName = textAt(contact, 'name', '/contact', EXTRACT_LIMITS.name, warnings)
  const contactEmail = textAt(contact, 'email', '/contact', EXTRACT_LIMITS.email, warnings)
  return {
    contactName,
    contactEmail,
    messageType: textAt(message, 'type', '/message', EXTRACT_LIMITS.type, warnings),
    text,
    snippet: text === null ? null : storable(oneLine(text), EXTRACT_LIMITS.snippet),
    warnings,
  }
}

/** Collapses white space to single spaces. */
function oneLine(text: string): string {
  return (MORE_THAN_SPACES.test(text) ? text.replace(/\s+/g, ' ') : text).trim()
}

/** Text that every database can store: no U+0000, no lone surrogate, cut without splitting a surrogate pair. */
export function storable(text: string, maxUnits: number): string {
  if (text.length <= maxUnits && !text.includes('\0') && text.isWellFormed()) return text
  let cut = text.length > maxUnits ? text.slice(0, maxUnits) : text
  if (cut.length < text.length && /[\uD800-\uDBFF]$/.test(cut)) cut = cut.slice(0, -1)
  return cut.replaceAll('\0', '\uFFFD').toWellFormed()
}

function parseObject(payload: Uint8Array): Json {
  const bytes = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength)
  const text = bytes.toString('utf8')
  return JSON.parse(text.charCodeAt(0) === 0xfeff ? text.slice(1) : text) as Json
}

/** The object's own field; null if it is absent or null: a sender's `null` means that the field is absent. */
function own(object: Json, key: string): unknown {
  return Object.hasOwn(object, key) ? (object[key] ?? null) : null
}

function objectAt(parent: Json, key: string, at: string, warnings: Warning[]): Json | null {
  const value = own(parent, key)
  if (value === null) return null
  if (typeof value === 'object' && !Array.isArray(value)) return value as Json
  warnings.push(unexpected(`${at}/${key}`, 'object', value))
  return null
}

function textAt(parent: Json | null, key: string, at: string, maxUnits: number, warnings: Warning[]): string | null {
  const value = parent ? own(parent, key) : null
  if (value === null) return null
  if (typeof value === 'string') return storable(value, maxUnits)
  warnings.push(unexpected(`${at}/${key}`, 'string', value))
  return null
}

function unexpected(path: string, expected: string, value: unknown): Warning {
  return { path, expected, got: Array.isArray(value) ? 'array' : typeof value }
}

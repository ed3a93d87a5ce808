// The references of a hook's request. They obey the rules of intake (intake/envelope.ts), but no message is refused for its reference,
// because its sender cannot be changed: a reference that cannot be stored is replaced by its digest, with a warning.

import { hash } from 'node:crypto'
import type { Warning } from '../event.ts'
import type { BodyReader } from './body-reader.ts'
import type { CompiledRecipe } from './compiled.ts'
import { fillTemplate, type Place, type Template } from './template.ts'

/** As intake/envelope.ts. */
export const MAX_HOOK_REF_UNITS = 512

export interface HookRefs {
  readonly sourceRef: string | null
  readonly channelRef: string | null
  /** Several messages in one request. */
  readonly isBatch: boolean
  readonly warnings: readonly Warning[]
}

/** What templates read outside of the body. */
export interface Surroundings {
  readonly header: (name: string) => string | null
  /** Null outside of references. */
  readonly hook: string | null
  /** In hex. */
  readonly sha256: () => string
}

export function readRefs(compiled: CompiledRecipe, body: BodyReader, around: Surroundings): HookRefs {
  const { recipe } = compiled
  const warnings: Warning[] = []
  const isBatch = recipe.batch.some((pointer) => body.typeOf(pointer) !== null)
  if (isBatch) return { sourceRef: around.sha256(), channelRef: null, isBatch, warnings }
  const read = (place: Place) => longValue(place, body) ?? readPlace(place, body, around)
  const refOf = (templates: readonly Template[], path: string): string | null => {
    const text = firstComplete(templates, read)
    if (text === null && templates.length > 0)
      warnings.push({ path, expected: 'a complete template', got: 'none of the recipe' })
    if (text === null || isStorable(text)) return text
    warnings.push({ path, expected: `at most ${MAX_HOOK_REF_UNITS} storable characters`, got: 'its SHA-256' })
    return digested(text)
  }
  return {
    sourceRef: refOf(compiled.sourceRef, '/source_ref'),
    channelRef: refOf(compiled.channelRef, '/channel_ref'),
    isBatch,
    warnings,
  }
}

export function firstComplete(templates: readonly Template[], read: (place: Place) => string | null): string | null {
  for (const template of templates) {
    const text = fillTemplate(template, read)
    if (text !== null && text.trim() !== '') return text
  }
  return null
}

/** Null, "" and white space alone are nothing, as they are in a reference of intake. */
export function readPlace(place: Place, body: BodyReader, around: Surroundings): string | null {
  const text = valueAt(place, body, around)
  if (place.from === 'exists') return text
  return text === null || text.trim() === '' ? null : text
}

function valueAt(place: Place, body: BodyReader, around: Surroundings): string | null {
  switch (place.from) {
    case 'pointer':
      return body.pointer(place.pointer)
    case 'strings':
      return body.strings(place.strings)
    case 'exists':
      return isThere(place.place, body) ? '' : null
    case 'field':
      return body.field(place.name)
    case 'fields':
      return body.fields()
    case 'body':
      return body.text()
    case 'header':
      return around.header(place.name)
    case 'hook':
      return around.hook
    case 'sha256':
      return around.sha256()
    case 'timestamp':
      return null
  }
}

function isThere(place: (Place & { readonly from: 'exists' })['place'], body: BodyReader): boolean {
  if (place.from === 'field') return body.field(place.name) !== null
  const type = body.typeOf(place.pointer)
  return type !== null && type !== 'null'
}

/** The digest of a value that is read in part: two long values may begin alike. */
function longValue(place: Place, body: BodyReader): string | null {
  const digest = place.from === 'pointer' ? body.longDigest(place.pointer) : null
  return digest === null ? null : `sha256:${digest}`
}

function isStorable(text: string): boolean {
  return text.length <= MAX_HOOK_REF_UNITS && !text.includes('\0') && text.isWellFormed()
}

/** In UTF-16: UTF-8 would make one character of all lone surrogates. */
function digested(text: string): string {
  return `sha256:${hash('sha256', Buffer.from(text, 'utf16le'), 'hex')}`
}

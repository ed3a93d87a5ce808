// Extracts what the index shows of a hook's event: contact, type and text, by the templates of the recipe that it came in with. Total, as
// model/extract.ts is: every payload that a hook accepts gives storable values.

import type { Warning } from '../event.ts'
import { EXTRACT_LIMITS, type Extract, oneLine, storable } from '../extract.ts'
import { bodyKindOf } from './body-kind.ts'
import { BodyReader } from './body-reader.ts'
import { type CompiledRecipe, compileRecipe } from './compiled.ts'
import type { Recipe } from './recipe.ts'
import { firstComplete, readPlace } from './refs.ts'
import type { Place, Template } from './template.ts'

/** Of a hook's event: its content type and payload as stored. `maxBytes` limits what is read, strings not counted. */
export function indexReader(recipe: Recipe, contentType: string, payload: Uint8Array, maxBytes?: number): BodyReader {
  // A kind that the recipe does not take was not accepted: it may have been, by an operator.
  const kind = bodyKindOf(contentType, recipe) ?? 'binary'
  const options = maxBytes === undefined ? {} : { maxBytes }
  return new BodyReader({ kind, contentType, payload }, compileRecipe(recipe).shown, { isValid: true, ...options })
}

/** `reader`: of this event, and done. */
export function extractWith(recipe: Recipe, reader: BodyReader): Extract {
  const { index } = compileRecipe(recipe)
  const read = (place: Place) => readPlace(place, reader, NOTHING_AROUND)
  const textOf = (templates: readonly Template[], maxUnits: number): string | null => {
    const found = firstComplete(templates, read)
    return found === null ? null : storable(found, maxUnits)
  }
  const text = textOf(index.text, EXTRACT_LIMITS.text)
  return {
    contactName: textOf(index.contactName, EXTRACT_LIMITS.name),
    contactEmail: textOf(index.contactEmail, EXTRACT_LIMITS.email),
    messageType: textOf(index.messageType, EXTRACT_LIMITS.type),
    text,
    snippet: text === null ? null : storable(oneLine(text), EXTRACT_LIMITS.snippet),
    warnings: warningsOf(compileRecipe(recipe), reader),
  }
}

/** In one go. */
export function extractWhole(recipe: Recipe, contentType: string, payload: Uint8Array): Extract {
  const reader = indexReader(recipe, contentType, payload)
  while (!reader.isDone) reader.run(Number.MAX_SAFE_INTEGER)
  return extractWith(recipe, reader)
}

/** Headers are not stored, and neither a digest nor a hook is a text. */
const NOTHING_AROUND = { header: () => null, hook: null, sha256: () => '' } as const

/** Where a text was expected and an object or array stands. */
function warningsOf({ index }: CompiledRecipe, reader: BodyReader): readonly Warning[] {
  const warnings = new Map<string, Warning>()
  for (const part of Object.values(index).flat(2) as Template[number][]) {
    if (typeof part === 'string' || part.from !== 'pointer') continue
    const got = reader.typeOf(part.pointer)
    if (got === 'object' || got === 'array') warnings.set(part.pointer, { path: part.pointer, expected: 'string', got })
  }
  return [...warnings.values()]
}

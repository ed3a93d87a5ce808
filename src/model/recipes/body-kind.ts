// What kind of body a request has, by its Content-Type and by what its recipe expects.

import type { BodyKind, RecipeDefinition } from './recipe.ts'

const KIND_OF_TYPE: Readonly<Record<string, BodyKind>> = {
  'application/json': 'json',
  'application/x-www-form-urlencoded': 'form',
  'multipart/form-data': 'multipart',
  'application/xml': 'xml',
  'text/xml': 'xml',
}

/** Null: not one that the recipe takes. */
export function bodyKindOf(contentType: string, { bodies }: Pick<RecipeDefinition, 'bodies'>): BodyKind | null {
  const type = mediaTypeOf(contentType)
  const kind = KIND_OF_TYPE[type] ?? kindOfOther(type)
  if (bodies.includes(kind)) return kind
  // What senders put above JSON if nobody said otherwise.
  const saysNothing = type === '' || type === 'text/plain' || type === 'application/octet-stream'
  return saysNothing && bodies.includes('json') ? 'json' : null
}

export function mediaTypeOf(contentType: string): string {
  return contentType.split(';', 1)[0]!.trim().toLowerCase()
}

/** Of a content type; null if it is not there. Quoted or not. */
export function mediaParameter(contentType: string, name: string): string | null {
  for (const part of contentType.slice(0, MAX_TYPE_UNITS).split(';').slice(1)) {
    const at = part.indexOf('=')
    if (at === -1 || part.slice(0, at).trim().toLowerCase() !== name) continue
    return part
      .slice(at + 1)
      .trim()
      .replace(/^"(.*)"$/, '$1')
  }
  return null
}

/** More than any header has. */
const MAX_TYPE_UNITS = 1024

function kindOfOther(type: string): BodyKind {
  if (type.endsWith('+json')) return 'json'
  if (type.endsWith('+xml')) return 'xml'
  return type.startsWith('text/') ? 'text' : 'binary'
}

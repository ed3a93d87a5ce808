// Templates: text with places in braces. `x:{/id}` is `x:7` for a body with "id": 7, and nothing for one without:
// a template is complete only if each of its places has a text. `{{` and `}}` are braces.

import { pointerProblem, type StringsBelow } from '../json/pointer.ts'

export type Place =
  /** The string, number, true or false at a JSON Pointer. */
  | PointerPlace
  /** All strings at and below a JSON Pointer, one a line: `{strings:/answers}`, or those under some keys: `{strings:/answers|text,email}`. */
  | { readonly from: 'strings'; readonly strings: StringsBelow }
  | FieldPlace
  /** Nothing, but the template is complete only if something stands at the place. */
  | { readonly from: 'exists'; readonly place: PointerPlace | FieldPlace }
  /** All fields of a form, `name: value`, one a line. */
  | { readonly from: 'fields' }
  | { readonly from: 'header'; readonly name: string }
  /** In references: an id of the hook, which every rotation of its address keeps. */
  | { readonly from: 'hook' }
  /** The body as text, of XML without its tags; in what is signed: as sent. */
  | { readonly from: 'body' }
  /** The SHA-256 of the body, in hex. */
  | { readonly from: 'sha256' }
  /** In what is signed: the time as sent. */
  | { readonly from: 'timestamp' }

type PointerPlace = { readonly from: 'pointer'; readonly pointer: string }
type FieldPlace = { readonly from: 'field'; readonly name: string }

export type Template = readonly (string | Place)[]

export const MAX_TEMPLATE_UNITS = 512
/** In one template: each may be as long as a reader reads (form-fields.ts). */
export const MAX_PLACES = 8
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/i

/** One sentence for a text that is no template. */
export class TemplateProblem extends Error {}

/** Throws a TemplateProblem. */
export function parseTemplate(text: string): Template {
  if (text === '') throw new TemplateProblem('A template is empty. Write a place in braces, as in {/id}.')
  if (text.length > MAX_TEMPLATE_UNITS)
    throw new TemplateProblem(`A template is longer than ${MAX_TEMPLATE_UNITS} characters. Shorten it.`)
  const parts: (string | Place)[] = []
  let literal = ''
  for (let at = 0; at < text.length; ) {
    const char = text[at]!
    if ((char === '{' || char === '}') && text[at + 1] === char) {
      literal += char
      at += 2
    } else if (char === '}') {
      throw new TemplateProblem(`A brace at character ${at + 1} closes nothing. Write }} for a brace.`)
    } else if (char === '{') {
      const { inside, end } = readBraces(text, at)
      if (literal !== '') parts.push(literal)
      literal = ''
      parts.push(parsePlace(inside))
      at = end
    } else {
      literal += char
      at += 1
    }
  }
  if (parts.filter((part) => typeof part !== 'string').length > MAX_PLACES)
    throw new TemplateProblem(`A template has more than ${MAX_PLACES} places. Remove some.`)
  return literal === '' ? parts : [...parts, literal]
}

/** The text of a template; null if it is not complete. */
export function fillTemplate(template: Template, read: (place: Place) => string | null): string | null {
  let text = ''
  for (const part of template) {
    const value = typeof part === 'string' ? part : read(part)
    if (value === null) return null
    text += value
  }
  return text
}

/** What stands between braces, and where the template goes on. In it, `}}` is a brace that is part of a name. */
function readBraces(text: string, open: number): { readonly inside: string; readonly end: number } {
  let inside = ''
  for (let at = open + 1; at < text.length; at++) {
    if (text[at] !== '}') inside += text[at]
    else if (text[at + 1] === '}') {
      inside += '}'
      at += 1
    } else return { inside, end: at + 1 }
  }
  throw new TemplateProblem(`The brace at character ${open + 1} is not closed. Write {{ for a brace.`)
}

function parsePlace(inside: string): Place {
  const [kind = '', rest] = splitOnce(inside)
  if (inside.startsWith('/')) return { from: 'pointer', pointer: checkedPointer(inside) }
  if (inside.startsWith('?')) {
    const place = parsePlace(inside.slice(1))
    if (place.from === 'pointer' || place.from === 'field') return { from: 'exists', place }
    throw new TemplateProblem(`{${inside}} is no place. Behind ? stands a JSON Pointer or form:name.`)
  }
  if (kind === 'strings') return { from: 'strings', strings: parseStrings(rest ?? '') }
  if (kind === 'form' && rest !== null && rest !== '') return { from: 'field', name: rest }
  if (kind === 'header' && rest !== null) {
    if (!HEADER_NAME.test(rest)) throw new TemplateProblem(`{${inside}} names no header. Write {header:x-name}.`)
    return { from: 'header', name: rest.toLowerCase() }
  }
  if (inside === 'form') return { from: 'fields' }
  const named = NAMED.find((name) => name === inside)
  if (named !== undefined) return { from: named }
  throw new TemplateProblem(`{${inside}} is no place. ${PLACES}`)
}

const NAMED = ['hook', 'body', 'sha256', 'timestamp'] as const
const PLACES =
  'Write a JSON Pointer as in {/a/b}, {?/a/b}, {strings:/a}, {form:name}, {form}, {header:name}, {hook}, {body}, {sha256} or {timestamp}.'

function parseStrings(text: string): StringsBelow {
  const at = text.lastIndexOf('|')
  if (at === -1) return { pointer: checkedPointer(text), keys: null }
  return { pointer: checkedPointer(text.slice(0, at)), keys: text.slice(at + 1).split(',') }
}

function checkedPointer(pointer: string): string {
  const problem = pointerProblem(pointer)
  if (problem !== null) throw new TemplateProblem(problem)
  return pointer
}

function splitOnce(text: string): readonly [string, string | null] {
  const at = text.indexOf(':')
  return at === -1 ? [text, null] : [text.slice(0, at), text.slice(at + 1)]
}

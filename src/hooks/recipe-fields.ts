// Reads the fields of a recipe file and collects what is wrong with them, each problem with the JSON Pointer of its place.

import { pointerProblem } from '../model/json/pointer.ts'
import { parseTemplate, type Place, TemplateProblem } from '../model/recipes/template.ts'
import { nearest } from '../runtime/nearest.ts'

export interface RecipeProblem {
  /** JSON Pointer into the file. */
  readonly path: string
  readonly message: string
}

export const MAX_TEMPLATES = 64
/** Of a prefix or a separator. */
const MAX_MARK_UNITS = 64
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9a-z-]{1,64}$/i
const MEDIA_TYPE = /^[a-z0-9!#$&^_.+-]{1,64}\/[a-z0-9!#$&^_.+-]{1,64}(?:; ?charset=[a-z0-9-]{1,32})?$/i

export class Fields {
  readonly problems: RecipeProblem[]
  readonly #values: ReadonlyMap<string, unknown>
  readonly #path: string
  readonly #known = new Set<string>()

  private constructor(values: object, path: string, problems: RecipeProblem[]) {
    this.#values = new Map(Object.entries(values))
    this.#path = path
    this.problems = problems
  }

  /** Null if the value is no object. */
  static of(value: unknown): Fields | null {
    return isObject(value) ? new Fields(value, '', []) : null
  }

  has(name: string): boolean {
    return this.#get(name) !== null
  }

  object(name: string): Fields {
    const value = this.#get(name)
    if (!isObject(value)) this.#complain(name, value === null ? 'It is missing.' : 'It is no object.')
    // What is missing in an object that is missing itself is no news.
    return new Fields(isObject(value) ? value : {}, `${this.#path}/${name}`, isObject(value) ? this.problems : [])
  }

  text(name: string, maxUnits: number, mayBeEmpty = false): string {
    const value = this.#get(name) ?? (mayBeEmpty && this.#values.get(name) === '' ? '' : null)
    if (typeof value === 'string' && (value !== '' || mayBeEmpty)) {
      if (value.length > maxUnits) this.#complain(name, `It is longer than ${maxUnits} characters.`)
      else if (!value.isWellFormed()) this.#complain(name, 'It has a lone surrogate.')
      return value
    }
    this.#complain(name, value === null ? 'It is missing.' : 'It is no text. Put it in quotes.')
    return ''
  }

  /** Named `prefix` in what is returned, whatever its name in the file. */
  optionalText(name: 'prefix' | 'secret_prefix'): { readonly prefix?: string } {
    return this.has(name) ? { prefix: this.text(name, MAX_MARK_UNITS) } : {}
  }

  optional(name: 'separator'): { readonly separator?: string } {
    return this.has(name) ? { separator: this.text(name, MAX_MARK_UNITS) } : {}
  }

  choice<const T extends string>(name: string, choices: readonly T[], byDefault?: T): T {
    const value = this.#get(name)
    if (value === null && byDefault !== undefined) return byDefault
    const found = choices.find((choice) => choice === value)
    if (found === undefined)
      this.#complain(name, `It is ${value === null ? 'missing' : 'unknown'}. Write ${list(choices)}.`)
    return found ?? choices[0]!
  }

  choices<const T extends string>(name: string, choices: readonly T[], byDefault: readonly T[]): readonly T[] {
    const value = this.#get(name)
    if (value === null) return byDefault
    const texts = asList(value)
    const found = choices.filter((choice) => texts.includes(choice))
    if (found.length === 0 || found.length < new Set(texts).size)
      this.#complain(name, `Write a list of ${list(choices)}.`)
    return found
  }

  integer(name: string, min: number, max: number): number {
    const value = this.#get(name)
    if (Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max) return value as number
    this.#complain(name, `Write a whole number from ${min} to ${max}.`)
    return min
  }

  header(name: string): string {
    const value = this.#get(name)
    if (typeof value === 'string' && HEADER_NAME.test(value)) return value.toLowerCase()
    this.#complain(name, 'Write the name of a header, as x-token.')
    return ''
  }

  mediaType(name: string): string {
    const value = this.#get(name)
    if (typeof value === 'string' && MEDIA_TYPE.test(value)) return value
    this.#complain(name, 'Write a media type, as text/plain.')
    return ''
  }

  pointer(name: string): string {
    const value = this.#get(name)
    const found = typeof value === 'string' ? pointerProblem(value) : 'Write a JSON Pointer, as /a/b.'
    if (found !== null) this.#complain(name, found)
    return typeof value === 'string' ? value : ''
  }

  /** None by default. */
  pointers(name: string): readonly string[] {
    return this.#listOf(name, (pointer, at) => {
      const found = pointerProblem(pointer)
      if (found !== null) this.#complain(`${name}${at}`, found)
    })
  }

  /** One or several; `undefined`: there is no default. */
  templates(
    name: string,
    places: readonly Place['from'][],
    byDefault: readonly string[] | undefined = [],
  ): readonly string[] {
    if (!this.has(name)) {
      if (byDefault === undefined) this.#complain(name, 'It is missing. Write a list of templates.')
      return byDefault ?? []
    }
    return this.#listOf(name, (template, at) => {
      try {
        for (const part of parseTemplate(template)) {
          if (typeof part === 'string' || places.includes(part.from)) continue
          this.#complain(`${name}${at}`, `${nameOf(part)} cannot stand here. ${WHY[part.from] ?? ''}`.trim())
        }
      } catch (error) {
        if (!(error instanceof TemplateProblem)) throw error
        this.#complain(`${name}${at}`, error.message)
      }
    })
  }

  /** Complains about fields that nobody asked for. */
  end(): void {
    for (const name of this.#values.keys()) {
      if (this.#known.has(name)) continue
      const near = nearest(name, [...this.#known])
      this.#complain(escaped(name), `The field is unknown.${near ? ` Did you mean ${near}?` : ''}`)
    }
  }

  #listOf(name: string, check: (text: string, at: string) => void): readonly string[] {
    const value = this.#get(name)
    if (value === null) return []
    const texts = asList(value)
    if (texts.length > MAX_TEMPLATES) this.#complain(name, `It has more than ${MAX_TEMPLATES} entries.`)
    const found: string[] = []
    for (const [n, text] of texts.slice(0, MAX_TEMPLATES).entries()) {
      const at = Array.isArray(value) ? `/${n}` : ''
      if (typeof text !== 'string')
        this.#complain(`${name}${at}`, 'It is no text. Put it in quotes: YAML reads braces as an object.')
      else {
        check(text, at)
        found.push(text)
      }
    }
    return found
  }

  /** Null and absent are the same. */
  #get(name: string): unknown {
    this.#known.add(name)
    return this.#values.get(name) ?? null
  }

  #complain(place: string, message: string): void {
    this.problems.push({ path: `${this.#path}/${place}`, message })
  }
}

const WHY: Readonly<Partial<Record<Place['from'], string>>> = {
  header: 'Headers are not stored with a message, and the index is made of what is stored.',
  hook: 'It stands in source_ref and channel_ref.',
  timestamp: 'It stands in what is signed.',
}

function nameOf(place: Place): string {
  if (place.from === 'header') return `{header:${place.name}}`
  return place.from === 'field' ? `{form:${place.name}}` : `{${place.from === 'fields' ? 'form' : place.from}}`
}

function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [value]
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function list(choices: readonly string[]): string {
  return choices.length === 1 ? choices[0]! : `${choices.slice(0, -1).join(', ')} or ${choices.at(-1)}`
}

function escaped(step: string): string {
  return step.replaceAll('~', '~0').replaceAll('/', '~1')
}

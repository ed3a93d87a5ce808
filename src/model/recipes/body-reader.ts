// Reads from a body what the templates of a recipe ask for. The work can be cut into slices (runtime/sliced-work.ts). Total: every body
// can be read, and a JSON text that is none says where.

import { hash } from 'node:crypto'
import type { StringsBelow } from '../json/pointer.ts'
import { PointerScan } from '../json/pointer-scan.ts'
import type { JsonType, ScanProblem } from '../json/scan.ts'
import { bodyText } from './body-text.ts'
import type { Wanted } from './compiled.ts'
import { type FormField, MAX_VALUE_BYTES, readFormField } from './form-fields.ts'
import { firstPart, partSeparator, readPart } from './multipart.ts'
import type { BodyKind } from './recipe.ts'

/** Of the text of all fields, and of strings: what the index keeps of a text (model/extract.ts), and as much again. */
const MAX_JOINED_UNITS = 32_768
/** Finding a field and decoding its name costs about as much as scanning this many bytes. */
const FIELD_COST_BYTES = 64

export interface Body {
  readonly kind: BodyKind
  readonly contentType: string
  readonly payload: Uint8Array
}

export interface BodyReaderOptions {
  /** The payload was checked when it came in. */
  readonly isValid?: boolean
  /** What is read at most, strings not counted. */
  readonly maxBytes?: number
}

export class BodyReader {
  readonly #body: Body
  readonly #bytes: Buffer
  readonly #wanted: Wanted
  readonly #json: PointerScan | null
  readonly #separator: Buffer | null
  readonly #fields = new Map<string, string>()
  /** Decoded texts: many templates may ask for one place. */
  readonly #texts = new Map<string, string | null>()
  #allFields = ''
  #at = 0
  #left: number
  #isDone = false

  constructor(body: Body, wanted: Wanted, options: BodyReaderOptions = {}) {
    const { payload, kind, contentType } = body
    this.#body = body
    this.#bytes = Buffer.isBuffer(payload)
      ? payload
      : Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength)
    this.#wanted = wanted
    this.#left = options.maxBytes ?? Number.MAX_SAFE_INTEGER
    this.#json = kind === 'json' ? new PointerScan(payload, wanted.pointers, options) : null
    this.#separator = kind === 'multipart' ? partSeparator(contentType) : null
    if (this.#separator !== null) this.#at = firstPart(this.#bytes, this.#separator)
    const hasFields = kind === 'form' || this.#separator !== null
    if (kind !== 'json' && !(hasFields && (wanted.fields.size > 0 || wanted.allFields))) this.#isDone = true
  }

  get isDone(): boolean {
    return this.#json?.isDone ?? this.#isDone
  }

  /** Of a JSON text that is none. */
  get problem(): ScanProblem | null {
    return this.#json?.problem ?? null
  }

  /** Goes on for at most `maxBytes`, a long field read whole. Returns how many were read. */
  run(maxBytes: number): number {
    if (this.#json) return this.#json.run(maxBytes)
    let read = 0
    while (!this.#isDone && read < maxBytes) read += this.#readField()
    return read
  }

  typeOf(pointer: string): JsonType | null {
    return this.#json?.typeOf(pointer) ?? null
  }

  pointer(pointer: string): string | null {
    return this.#once(pointer, () => this.#json?.textOf(pointer, MAX_VALUE_BYTES) ?? null)
  }

  /** The SHA-256, in hex, of a text that is longer than `pointer` reads of it, as sent; null for any other. */
  longDigest(pointer: string): string | null {
    if (this.typeOf(pointer) !== 'string') return null
    const source = this.#json!.sourceOf(pointer)
    return source.length > MAX_VALUE_BYTES ? this.#once(`digest ${pointer}`, () => hash('sha256', source, 'hex')) : null
  }

  /** All strings at and below a place. */
  strings(strings: StringsBelow): string | null {
    return this.#once(`strings ${this.#wanted.pointers.placeOf(strings)}`, () => {
      const texts = this.#json?.stringsOf(strings, MAX_JOINED_UNITS).filter((text) => text.trim() !== '') ?? []
      return texts.length === 0 ? null : texts.join('\n').slice(0, MAX_JOINED_UNITS)
    })
  }

  field(name: string): string | null {
    return this.#fields.get(name) ?? null
  }

  /** All fields with a value, one a line. */
  fields(): string | null {
    return this.#allFields === '' ? null : this.#allFields.slice(0, -1)
  }

  text(): string | null {
    return this.#once('body', () => bodyText(this.#body.kind, this.#body.contentType, this.#bytes))
  }

  #once(name: string, read: () => string | null): string | null {
    const known = this.#texts.get(name)
    if (known !== undefined) return known
    const text = read()
    this.#texts.set(name, text)
    return text
  }

  /** Returns how many bytes it took. */
  #readField(): number {
    const from = this.#at
    const read = this.#separator
      ? readPart(this.#bytes, from, this.#separator)
      : from < this.#bytes.length
        ? readFormField(this.#bytes, from)
        : null
    if (read === null) {
      this.#isDone = true
      return 0
    }
    this.#keep(read.field)
    this.#at = read.next
    this.#left -= FIELD_COST_BYTES
    if (this.#at >= this.#bytes.length || this.#left <= 0) this.#isDone = true
    return Math.min(read.next - from, MAX_VALUE_BYTES) + FIELD_COST_BYTES
  }

  #keep({ name, value, isFile }: FormField): void {
    const isWanted = this.#wanted.fields.has(name)
    const isShown = this.#wanted.allFields && this.#allFields.length < MAX_JOINED_UNITS
    if (isFile || !(isWanted || isShown)) return
    const text = value()
    // Of a repeated name the last counts, as of a repeated key.
    if (isWanted) this.#fields.set(name, text)
    if (isShown && text.trim() !== '') this.#allFields += `${name}: ${text.slice(0, MAX_JOINED_UNITS)}\n`
  }
}

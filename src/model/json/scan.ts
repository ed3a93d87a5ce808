// Scans the bytes of a JSON text: whether JSON.parse would accept them, where not, and where the values of named fields are. No
// tree and no recursion: memory for names and one bit for each open bracket. The work can be cut into slices of 4 bytes, the longest character, or more.
//
// A scan may have a limit, for a reader of texts that are known to be valid: it ends after so many bytes, string values not counted,
// because those cost little. The fields that begin before are found, and a string among them is whole.

import { isUtf8 } from 'node:buffer'
import { type FieldNames, NO_FIELD, stringAt } from './field-names.ts'
import {
  AFTER_VALUE,
  BEGIN_KEY,
  BEGIN_SCALAR,
  BEGIN_STRING,
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COLON,
  COMMA,
  END_STRING,
  FIRST_ACTION,
  FIRST_ELEMENT,
  FIRST_KEY,
  KEY,
  MAY_END,
  NEXT,
  OPEN_ARRAY,
  OPEN_OBJECT,
  STRING,
  VALUE,
  WRONG,
} from './grammar.ts'
import { endOfText } from './string-text.ts'

export type ScanProblem = 'not_utf8' | 'ends_too_early' | { readonly line: number; readonly column: number }
export type JsonType = 'object' | 'array' | 'string' | 'number' | 'boolean' | 'null'

/** Brackets for which one number keeps a bit. */
const BITS = 30
/** Larger than any body, and a small integer for the engine. */
const NO_LIMIT = 2 ** 30

export class JsonScan {
  readonly #bytes: Buffer
  readonly #fields: FieldNames
  /** Where the value of each field begins, of a repeated key the last; NO_FIELD: nowhere. */
  readonly #starts: number[]
  /** Where its string ends. */
  readonly #ends: number[]
  /** Where the keys of look-alikes are. */
  readonly #keys: { readonly start: number; readonly end: number }[] = []
  #at: number
  #state = VALUE
  #isDone = false
  #problem: ScanProblem | null = null
  #rootIsObject = false
  #depth = 0
  #brackets = 0
  #commas = 0
  #inObject = false
  /** For each bracket around the innermost: whether it is one of an object. */
  #outer = 0
  readonly #outermost: number[] = []
  /** Where the key that is being read begins; -1 while none is. */
  #keyAt = -1
  /** The field whose value comes next, whose string is being read, whose object is open. */
  #next = NO_FIELD
  #stringOf = NO_FIELD
  #within = NO_FIELD
  /** Where something unexpected stands; the line and column up to which its place has been counted. */
  #wrongAt = -1
  #counted = 0
  #line = 1
  #column = 1
  /** Where the scan ends at the latest, unless a string value moves it on; how far that is while a string value is read. */
  #limitAt: number
  #leftAfterString = 0

  constructor(bytes: Uint8Array, fields: FieldNames, maxBytes = NO_LIMIT) {
    this.#bytes = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#fields = fields
    this.#starts = new Array<number>(fields.count).fill(NO_FIELD)
    this.#ends = new Array<number>(fields.count).fill(0)
    // A leading BOM is accepted and stored; JSON.parse would not take it.
    this.#at = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0
    this.#counted = this.#at
    this.#limitAt = this.#at + maxBytes
  }

  get byteLength(): number {
    return this.#bytes.byteLength
  }

  get isDone(): boolean {
    return this.#isDone
  }

  /** The scan ended at its limit: what follows was not looked at. */
  get isCut(): boolean {
    return this.#isDone && this.#problem === null && this.#at < this.#bytes.length
  }

  /** Null if JSON.parse would accept the text, or as much of it as was scanned. */
  get problem(): ScanProblem | null {
    return this.#problem
  }

  /** There are no more values than this. */
  get mostValues(): number {
    return 1 + this.#brackets + this.#commas
  }

  get isObject(): boolean {
    return this.#rootIsObject
  }

  /** Goes on for at most `maxBytes`, which is at least 4. Returns how many were scanned. */
  run(maxBytes: number): number {
    const from = this.#at
    if (this.#wrongAt === -1) this.#scanSlice(maxBytes)
    const scanned = this.#at - from
    return this.#wrongAt === -1 ? scanned : scanned + this.#locate(maxBytes - scanned)
  }

  typeOf(field: number): JsonType | null {
    const start = this.#starts[field]!
    return start === NO_FIELD ? null : typeAt(this.#bytes[start]!)
  }

  /** The key that a look-alike has. */
  keyOf(field: number): string {
    const key = this.#keys[field]
    return key ? stringAt(this.#bytes, key.start, key.end) : ''
  }

  /** The value of a field that is a string. */
  stringOf(field: number): string {
    return stringAt(this.#bytes, this.#starts[field]!, this.#ends[field]!)
  }

  /** The first bytes, as sent. */
  beginning(maxBytes: number): string {
    return this.#bytes.toString('latin1', 0, Math.min(maxBytes, this.#bytes.length))
  }

  /** The beginning of a field's value, as sent. */
  sourceOf(field: number, maxBytes: number): string {
    const start = this.#starts[field]!
    return this.#bytes.toString('latin1', start, Math.min(start + maxBytes, this.#bytes.length))
  }

  #scanSlice(maxBytes: number): void {
    const bytes = this.#bytes
    const end = this.#characterEnd(this.#at + maxBytes)
    const slice = this.#at === 0 && end === bytes.length ? bytes : bytes.subarray(this.#at, end)
    if (!isUtf8(slice)) {
      this.#finish('not_utf8')
      return
    }
    this.#scan(end)
    if (this.#wrongAt !== -1) return
    if (this.#at < bytes.length) {
      if (this.#at >= this.#limitAt) this.#finish(null)
      return
    }
    this.#finish(this.#depth === 0 && MAY_END.has(this.#state) ? null : 'ends_too_early')
  }

  /** Steps back from within a character. */
  #characterEnd(at: number): number {
    const bytes = this.#bytes
    if (at >= bytes.length) return bytes.length
    for (let end = at; end > at - 4; end--) if ((bytes[end]! & 0xc0) !== 0x80) return end
    return at
  }

  #scan(end: number): void {
    const bytes = this.#bytes
    let at = this.#at
    let state = this.#state
    let stop = Math.min(end, this.#limitAt)
    while (at < stop) {
      if (state === STRING) at = endOfText(bytes, at, stop)
      if (at === stop) break
      const next = NEXT[state * 256 + bytes[at]!]!
      if (next < FIRST_ACTION) {
        state = next
      } else if (next >= BEGIN_SCALAR) {
        this.#beginValue(at)
        state = next - BEGIN_SCALAR
      } else {
        state = this.#act(next, at)
        if (state === WRONG) {
          this.#wrongAt = at
          break
        }
        if (next === BEGIN_STRING || next === END_STRING) stop = Math.min(end, this.#limitAt)
      }
      at += 1
    }
    this.#at = at
    this.#state = state
  }

  /** Returns the next state. */
  #act(action: number, at: number): number {
    switch (action) {
      case BEGIN_KEY:
        this.#keyAt = at + 1
        return STRING
      case BEGIN_STRING:
        this.#stringOf = this.#next
        this.#beginValue(at)
        this.#leftAfterString = this.#limitAt - at - 1
        this.#limitAt = NO_LIMIT
        return STRING
      case END_STRING:
        return this.#endString(at)
      case COMMA:
        if (this.#depth === 0) return WRONG
        this.#commas += 1
        return this.#inObject ? KEY : VALUE
      case OPEN_OBJECT:
        this.#open(true, at)
        return FIRST_KEY
      case OPEN_ARRAY:
        this.#open(false, at)
        return FIRST_ELEMENT
      case CLOSE_OBJECT:
        return this.#close(true)
      case CLOSE_ARRAY:
        return this.#close(false)
      default:
        return WRONG
    }
  }

  #beginValue(at: number): void {
    const field = this.#next
    if (field === NO_FIELD) return
    this.#next = NO_FIELD
    this.#starts[field] = at
    for (const inner of this.#fields.inside(field)) this.#starts[inner] = NO_FIELD
  }

  #endString(at: number): number {
    if (this.#keyAt !== -1) {
      this.#next = this.#fieldWithKey(this.#keyAt, at)
      this.#keyAt = -1
      return COLON
    }
    // At least its second quotation mark is scanned.
    this.#limitAt = at + Math.max(1, this.#leftAfterString)
    if (this.#stringOf !== NO_FIELD) this.#ends[this.#stringOf] = at + 1
    this.#stringOf = NO_FIELD
    return AFTER_VALUE
  }

  #fieldWithKey(start: number, end: number): number {
    if (this.#depth > 1 && (this.#depth > 2 || this.#within === NO_FIELD)) return NO_FIELD
    const field = this.#fields.find(this.#depth === 1 ? NO_FIELD : this.#within, this.#bytes, start, end)
    if (this.#fields.isLookAlike(field)) this.#keys[field] = { start: start - 1, end: end + 1 }
    return field
  }

  #open(isObject: boolean, at: number): void {
    if (this.#depth === 0) this.#rootIsObject = isObject
    if (this.#depth === 1) this.#within = this.#next
    this.#beginValue(at)
    if (this.#depth > 0 && this.#depth % BITS === 0) {
      this.#outermost.push(this.#outer)
      this.#outer = 0
    }
    this.#outer = (this.#outer << 1) | Number(this.#inObject)
    this.#depth += 1
    this.#brackets += 1
    this.#inObject = isObject
  }

  #close(isObject: boolean): number {
    if (this.#depth === 0 || this.#inObject !== isObject) return WRONG
    this.#depth -= 1
    this.#inObject = (this.#outer & 1) === 1
    this.#outer >>>= 1
    if (this.#depth > 0 && this.#depth % BITS === 0) this.#outer = this.#outermost.pop()!
    return AFTER_VALUE
  }

  /** Counts lines, and columns as JavaScript does, up to the unexpected byte. Returns how many bytes it looked at. */
  #locate(maxBytes: number): number {
    const bytes = this.#bytes
    const from = this.#counted
    const end = Math.min(from + maxBytes, this.#wrongAt)
    let [line, column] = [this.#line, this.#column]
    for (let at = from; at < end; at++) {
      const byte = bytes[at]!
      if (byte === 0x0a || byte === 0x0d) {
        // CR LF is one line break.
        if (byte === 0x0d || bytes[at - 1] !== 0x0d) line += 1
        column = 1
      } else if ((byte & 0xc0) !== 0x80) column += byte >= 0xf0 ? 2 : 1
    }
    this.#line = line
    this.#column = column
    this.#counted = end
    if (end === this.#wrongAt) this.#finish({ line, column })
    return end - from
  }

  #finish(problem: ScanProblem | null): void {
    this.#problem = problem
    this.#isDone = true
  }
}

function typeAt(byte: number): JsonType {
  if (byte === 0x22) return 'string'
  if (byte === 0x7b) return 'object'
  if (byte === 0x5b) return 'array'
  if (byte === 0x6e) return 'null'
  return byte === 0x74 || byte === 0x66 ? 'boolean' : 'number'
}

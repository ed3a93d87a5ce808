// Reads the values at JSON Pointers from the bytes of a JSON text, without a tree: it keeps where values begin and end, and decodes those
// that are asked for. Numbers are their source text, so that no digit is lost.
//
// The text must be valid JSON: either a JsonScan has checked it, or it is checked first. The work can be cut into slices, and limited, as
// a JsonScan's.

import { FieldNames } from './field-names.ts'
import { type Collector, type JsonPointers, keyText, type PointerNode, type StringsBelow } from './pointer.ts'
import { JsonScan, type JsonType, type ScanProblem } from './scan.ts'
import { cutJsonString } from './string-cut.ts'
import { endOfText } from './string-text.ts'

/** Strings that are collected below one place: more than an index entry shows. */
const MAX_COLLECTED = 2_000
const MAX_COLLECTED_BYTES = 96 * 1024

interface Frame {
  readonly node: PointerNode
  readonly isObject: boolean
  index: number
}

/** While the object or array is open at whose place strings are collected. */
interface Collecting {
  readonly collector: Collector
  readonly depth: number
  /** Whether the last key was one of its keys. */
  isWanted: boolean
}

export class PointerScan {
  readonly #bytes: Buffer
  readonly #pointers: JsonPointers
  /** Null once it is done, or if the text is known to be valid. */
  #check: JsonScan | null
  #problem: ScanProblem | null = null
  #isDone = false
  #at: number
  /** Bytes outside of strings that may still be read. */
  #left: number
  /** Where the value of each place begins, and where it ends if it is no object or array. */
  readonly #starts: number[]
  readonly #ends: number[]
  readonly #collected: number[][]
  readonly #collectedBytes: number[]
  /** Of objects and arrays that lead to a place. */
  readonly #frames: Frame[] = []
  readonly #collecting: Collecting[] = []
  #depth = 0
  /** What the next value is. */
  #next: PointerNode | null
  #stringAt = -1
  /** A string that has ended: a key if a colon follows. */
  #endedAt = -1
  #endedTo = -1
  #scalarOf = -1

  constructor(bytes: Uint8Array, pointers: JsonPointers, options: { isValid?: boolean; maxBytes?: number } = {}) {
    this.#bytes = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#pointers = pointers
    this.#check = options.isValid ? null : new JsonScan(this.#bytes, NO_FIELDS)
    this.#left = options.maxBytes ?? Number.MAX_SAFE_INTEGER
    this.#starts = new Array<number>(pointers.count).fill(-1)
    this.#ends = new Array<number>(pointers.count).fill(0)
    this.#collected = Array.from({ length: pointers.count }, () => [])
    this.#collectedBytes = new Array<number>(pointers.count).fill(0)
    this.#next = pointers.root
    this.#at = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0
  }

  get isDone(): boolean {
    return this.#isDone
  }

  /** Null if the text is JSON. */
  get problem(): ScanProblem | null {
    return this.#problem
  }

  /** Goes on for at most `maxBytes`, which is at least 8. Returns how many were scanned. */
  run(maxBytes: number): number {
    if (this.#check === null) return this.#read(maxBytes)
    const checked = this.#check.run(maxBytes)
    if (this.#check.isDone) {
      this.#problem = this.#check.problem
      this.#check = null
      if (this.#problem !== null) this.#isDone = true
    }
    return checked
  }

  typeOf(pointer: string): JsonType | null {
    const start = this.#starts[this.#pointers.placeOf(pointer)] ?? -1
    return start === -1 ? null : typeAt(this.#bytes[start]!)
  }

  /** Of a string its text, of a number its source; null for null, objects, arrays and nothing. Cut after about `maxBytes`. */
  textOf(pointer: string, maxBytes: number): string | null {
    const place = this.#pointers.placeOf(pointer)
    const type = this.typeOf(pointer)
    if (type === null || type === 'null' || type === 'object' || type === 'array') return null
    const [start, end] = [this.#starts[place]!, this.#ends[place]!]
    return type === 'string'
      ? cutJsonString(this.#bytes, start, end, maxBytes)
      : this.#bytes.toString('latin1', start, Math.min(end, start + maxBytes))
  }

  /** Of a string or number, as sent. */
  sourceOf(pointer: string): Buffer {
    const place = this.#pointers.placeOf(pointer)
    return this.#bytes.subarray(this.#starts[place], this.#ends[place])
  }

  /** In order; the first ones. */
  stringsOf(strings: StringsBelow, maxBytes: number): string[] {
    const spans = this.#collected[this.#pointers.placeOf(strings)] ?? []
    const texts: string[] = []
    for (let n = 0; n < spans.length; n += 2) texts.push(cutJsonString(this.#bytes, spans[n]!, spans[n + 1]!, maxBytes))
    return texts
  }

  #read(maxBytes: number): number {
    const bytes = this.#bytes
    const from = this.#at
    const end = Math.min(from + maxBytes, bytes.length)
    let at = from
    while (at < end && (this.#left > 0 || this.#stringAt !== -1)) {
      if (this.#stringAt !== -1) {
        at = endOfText(bytes, at, end)
        if (at === end) break
        // The text is valid: it is a quotation mark, or an escape that goes on behind this slice.
        if (bytes[at] === QUOTE) this.#endString(at)
        else if (end < bytes.length) break
        at += 1
        continue
      }
      this.#left -= 1
      this.#step(bytes[at]!, at)
      at += 1
    }
    this.#at = at
    if (at === bytes.length || (this.#left <= 0 && this.#stringAt === -1)) this.#finish()
    return at - from
  }

  #step(byte: number, at: number): void {
    switch (byte) {
      case QUOTE:
        this.#stringAt = at
        return
      case COLON:
        this.#endKey()
        return
      case COMMA:
        this.#endValue(at)
        this.#nextElement()
        return
      case OPEN_OBJECT:
      case OPEN_ARRAY:
        this.#open(byte === OPEN_OBJECT, at)
        return
      case CLOSE_OBJECT:
      case CLOSE_ARRAY:
        this.#endValue(at)
        this.#close()
        return
      case 0x20:
      case 0x09:
      case 0x0a:
      case 0x0d:
        if (this.#scalarOf !== -1) this.#endValue(at)
        return
      default:
        if (this.#next !== null) this.#scalarOf = this.#begin(this.#next, at)
    }
  }

  #endString(at: number): void {
    this.#endedAt = this.#stringAt
    this.#endedTo = at + 1
    this.#stringAt = -1
  }

  #endKey(): void {
    const frame = this.#depth === this.#frames.length ? this.#frames.at(-1) : undefined
    this.#next = frame?.isObject ? frame.node.member(this.#bytes, this.#endedAt + 1, this.#endedTo - 1) : null
    let key: string | null = null
    for (const one of this.#collecting) {
      const { keys } = one.collector
      one.isWanted = keys === null || keys.has((key ??= keyText(this.#bytes, this.#endedAt + 1, this.#endedTo - 1)))
    }
    this.#endedAt = -1
  }

  /** Of a number, a literal or a string; of an object or array it was done when it closed. */
  #endValue(at: number): void {
    if (this.#scalarOf !== -1) this.#ends[this.#scalarOf] = at
    this.#scalarOf = -1
    if (this.#endedAt === -1) return
    const [start, end] = [this.#endedAt, this.#endedTo]
    this.#endedAt = -1
    for (const { collector, isWanted } of this.#collecting) if (isWanted) this.#collect(collector.place, start, end)
    const node = this.#next
    if (node === null) return
    const place = this.#begin(node, start)
    if (place !== -1) this.#ends[place] = end
    for (const collector of node.collectors) this.#collect(collector.place, start, end)
  }

  /** Returns the number of the place. */
  #begin(node: PointerNode, at: number): number {
    for (const place of node.within) {
      this.#starts[place] = -1
      this.#collected[place]!.length = 0
      this.#collectedBytes[place] = 0
    }
    this.#next = null
    if (node.place !== -1) this.#starts[node.place] = at
    return node.place
  }

  #collect(place: number, start: number, end: number): void {
    const spans = this.#collected[place]!
    if (spans.length >= 2 * MAX_COLLECTED || this.#collectedBytes[place]! >= MAX_COLLECTED_BYTES) return
    this.#collectedBytes[place]! += end - start
    spans.push(start, end)
  }

  #open(isObject: boolean, at: number): void {
    const node = this.#next
    const isTracked = this.#depth === this.#frames.length
    this.#depth += 1
    if (node === null || !isTracked) return
    this.#begin(node, at)
    for (const collector of node.collectors)
      this.#collecting.push({ collector, depth: this.#depth, isWanted: collector.keys === null })
    if (node.isLeaf) return
    this.#frames.push({ node, isObject, index: 0 })
    if (!isObject) this.#next = node.element(0)
  }

  #close(): void {
    if (this.#frames.length === this.#depth) this.#frames.pop()
    while (this.#collecting.at(-1)?.depth === this.#depth) this.#collecting.pop()
    this.#depth -= 1
    this.#next = null
  }

  #nextElement(): void {
    const frame = this.#depth === this.#frames.length ? this.#frames.at(-1) : undefined
    this.#next = null
    if (!frame || frame.isObject) return
    frame.index += 1
    this.#next = frame.node.element(frame.index)
  }

  #finish(): void {
    // A text may be one value. Behind the limit it is unknown whether a string was a key, unless a place was expected.
    if (this.#at < this.#bytes.length && this.#next === null) this.#endedAt = -1
    this.#endValue(this.#at)
    this.#isDone = true
  }
}

const QUOTE = 0x22
const COLON = 0x3a
const COMMA = 0x2c
const OPEN_OBJECT = 0x7b
const OPEN_ARRAY = 0x5b
const CLOSE_OBJECT = 0x7d
const CLOSE_ARRAY = 0x5d
const NO_FIELDS = new FieldNames([])

function typeAt(byte: number): JsonType {
  if (byte === QUOTE) return 'string'
  if (byte === OPEN_OBJECT) return 'object'
  if (byte === OPEN_ARRAY) return 'array'
  if (byte === 0x6e) return 'null'
  return byte === 0x74 || byte === 0x66 ? 'boolean' : 'number'
}

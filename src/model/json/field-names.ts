// The names of the fields that a scan looks for. Keys are compared decoded, and as bytes: most keys of a message are none of
// these names, and a text for each would cost more than the scan.

export const NO_FIELD = -1

export interface FieldName {
  /** ASCII. */
  readonly key: string
  /** The field that it is in; NO_FIELD: the top-level object. */
  readonly within: number
  /** The field for keys that differ in case, `_` and `-` alone. */
  readonly lookAlike?: number
}

interface Name {
  readonly field: number
  readonly within: number
  readonly bytes: Buffer
  readonly lookAlike: number
}

/** Bytes that one character of a key takes up when it is escaped: \u005f. */
const ESCAPE_BYTES = 6
const NO_NAMES: readonly Name[] = []

export class FieldNames {
  readonly #byHash = new Map<number, Name[]>()
  readonly #inside: number[][] = []
  readonly #maxLength: number
  readonly #exact: number
  readonly #decoded: Buffer
  /** Of fields, with those for look-alikes. */
  readonly count: number

  /** A field's number is its place in the list; fields for look-alikes have the numbers behind. */
  constructor(names: readonly FieldName[]) {
    this.#exact = names.length
    this.#maxLength = Math.max(0, ...names.map(({ key }) => key.length))
    this.#decoded = Buffer.alloc(this.#maxLength)
    for (const [field, { key, within, lookAlike = NO_FIELD }] of names.entries()) {
      const bytes = Buffer.from(key)
      const hash = foldedHash(bytes, 0, bytes.length)
      this.#byHash.set(hash, [...(this.#byHash.get(hash) ?? []), { field, within, bytes, lookAlike }])
      if (within !== NO_FIELD) (this.#inside[within] ??= []).push(field)
    }
    this.count = Math.max(names.length, ...names.map(({ lookAlike = NO_FIELD }) => lookAlike + 1))
    for (let field = 0; field < this.count; field++) this.#inside[field] ??= []
  }

  /** The fields within a field. */
  inside(field: number): readonly number[] {
    return this.#inside[field]!
  }

  isLookAlike(field: number): boolean {
    return field >= this.#exact
  }

  /** The field within another one that a key means, given as it stands between its quotation marks; NO_FIELD if none. */
  find(within: number, bytes: Buffer, start: number, end: number): number {
    if (end - start > this.#maxLength * ESCAPE_BYTES) return NO_FIELD
    for (let at = start; at < end; at++) {
      if (bytes[at] === BACKSLASH) return this.#find(within, this.#decoded, 0, this.#decode(bytes, start, end))
    }
    return this.#find(within, bytes, start, end)
  }

  #find(within: number, bytes: Buffer, start: number, end: number): number {
    if (end - start > this.#maxLength) return NO_FIELD
    for (const name of this.#byHash.get(foldedHash(bytes, start, end)) ?? NO_NAMES) {
      if (name.within !== within) continue
      if (isSame(name.bytes, bytes, start, end)) return name.field
      if (name.lookAlike !== NO_FIELD && isAlike(name.bytes, bytes, start, end)) return name.lookAlike
    }
    return NO_FIELD
  }

  /** Returns the length; 0 for a key that is too long or has an escape for anything but an ASCII character: it is no name. */
  #decode(bytes: Buffer, start: number, end: number): number {
    let length = 0
    for (let at = start; at < end; at++) {
      let code = bytes[at]!
      if (code === BACKSLASH) {
        if (bytes[at + 1] !== 0x75) return 0
        code = Number.parseInt(bytes.toString('latin1', at + 2, at + ESCAPE_BYTES), 16)
        at += ESCAPE_BYTES - 1
      }
      if (code > 0x7f || length === this.#maxLength) return 0
      this.#decoded[length++] = code
    }
    return length
  }
}

const BACKSLASH = 0x5c
const UNDERSCORE = 0x5f
const HYPHEN = 0x2d
/** Turns upper case into lower case. */
const CASE_BIT = 0x20

/** Decodes a string that stands between its quotation marks. */
export function stringAt(bytes: Buffer, start: number, end: number): string {
  const text = bytes.toString('utf8', start, end)
  return text.includes('\\') ? (JSON.parse(text) as string) : text.slice(1, -1)
}

function isSame(name: Buffer, bytes: Buffer, start: number, end: number): boolean {
  if (end - start !== name.length) return false
  for (let at = 0; at < name.length; at++) if (name[at] !== bytes[start + at]) return false
  return true
}

/** Whether letters and digits are the same, in any case. */
function isAlike(name: Buffer, bytes: Buffer, start: number, end: number): boolean {
  let at = start
  for (const byte of name) {
    if (isSeparator(byte)) continue
    while (at < end && isSeparator(bytes[at]!)) at += 1
    if (at === end || (bytes[at]! | CASE_BIT) !== (byte | CASE_BIT)) return false
    at += 1
  }
  while (at < end && isSeparator(bytes[at]!)) at += 1
  return at === end
}

/** Equal for keys that are alike. */
function foldedHash(bytes: Buffer, start: number, end: number): number {
  let hash = 0
  for (let at = start; at < end; at++) {
    const byte = bytes[at]!
    if (!isSeparator(byte)) hash = (Math.imul(hash, 31) + (byte | CASE_BIT)) | 0
  }
  return hash
}

function isSeparator(byte: number): boolean {
  return byte === UNDERSCORE || byte === HYPHEN
}

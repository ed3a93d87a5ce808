// The names of the fields that a scan looks for. Keys are compared decoded, and against the bytes: most keys of a message are none of
// these names, and cost no text.

export const NO_FIELD = -1

export interface FieldName {
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

const BACKSLASH = 0x5c
/** Bytes that one character of a key takes up when it is escaped. */
const ESCAPE_BYTES = 6

export class FieldNames {
  readonly #byHash = new Map<number, Name[]>()
  readonly #inside: number[][] = []
  readonly #maxLength: number
  readonly #exact: number
  /** Of fields, with those for look-alikes. */
  readonly count: number

  /** A field's number is its place in the list; fields for look-alikes have the numbers behind. */
  constructor(names: readonly FieldName[]) {
    this.#exact = names.length
    this.#maxLength = Math.max(...names.map(({ key }) => key.length))
    for (const [field, { key, within, lookAlike = NO_FIELD }] of names.entries()) {
      const bytes = Buffer.from(key)
      const hash = foldedHash(bytes, 0, bytes.length)
      this.#byHash.set(hash, [...(this.#byHash.get(hash) ?? []), { field, within, bytes, lookAlike }])
      this.#inside[field] ??= []
      if (within !== NO_FIELD) (this.#inside[within] ??= []).push(field)
    }
    this.count = Math.max(names.length, ...names.map(({ lookAlike = NO_FIELD }) => lookAlike + 1))
  }

  /** The fields within a field. */
  inside(field: number): readonly number[] {
    return this.#inside[field] ?? []
  }

  isLookAlike(field: number): boolean {
    return field >= this.#exact
  }

  /** The field within another one that a key means, given as it stands between its quotation marks; NO_FIELD if none. */
  find(within: number, bytes: Buffer, start: number, end: number): number {
    if (end - start > this.#maxLength * ESCAPE_BYTES) return NO_FIELD
    for (let at = start; at < end; at++) {
      if (bytes[at] !== BACKSLASH) continue
      const key = Buffer.from(stringAt(bytes, start - 1, end + 1))
      return this.#findPlain(within, key, 0, key.length)
    }
    return this.#findPlain(within, bytes, start, end)
  }

  #findPlain(within: number, bytes: Buffer, start: number, end: number): number {
    if (end - start > this.#maxLength) return NO_FIELD
    for (const name of this.#byHash.get(foldedHash(bytes, start, end)) ?? NO_NAMES) {
      if (name.within !== within) continue
      if (isSame(name.bytes, bytes, start, end)) return name.field
      if (
        name.lookAlike !== NO_FIELD &&
        fold(name.bytes.toString('latin1')) === fold(bytes.toString('latin1', start, end))
      ) {
        return name.lookAlike
      }
    }
    return NO_FIELD
  }
}

const NO_NAMES: readonly Name[] = []

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

function fold(key: string): string {
  return key.replace(/[_-]/g, '').toLowerCase()
}

/** Equal for keys that fold to the same. */
function foldedHash(bytes: Buffer, start: number, end: number): number {
  let hash = 0
  for (let at = start; at < end; at++) {
    const byte = bytes[at]!
    if (byte !== 0x5f && byte !== 0x2d) hash = (Math.imul(hash, 31) + (byte | 0x20)) | 0
  }
  return hash
}

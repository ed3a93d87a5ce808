// Reads the fields of a form (application/x-www-form-urlencoded) one after the other. Total: what is no form gives fields that nobody
// looks for, and a wrong escape stands for itself.

export interface FormField {
  readonly name: string
  /** Decoded when it is asked for. */
  readonly value: () => string
  readonly isFile: boolean
}

/** Bytes of a value, escapes included, that are decoded: the rest is never shown. */
export const MAX_VALUE_BYTES = 96 * 1024
const MAX_NAME_BYTES = 2048

/** Gives the field that begins at `at`, and where the next one begins. */
export function readFormField(bytes: Buffer, at: number): { readonly field: FormField; readonly next: number } {
  const found = bytes.indexOf(AMPERSAND, at)
  const end = found === -1 ? bytes.length : found
  const equals = bytes.subarray(at, end).indexOf(EQUALS)
  const nameEnd = equals === -1 ? end : at + equals
  const value = () =>
    equals === -1 ? '' : decodeForm(bytes, nameEnd + 1, Math.min(end, nameEnd + 1 + MAX_VALUE_BYTES))
  const name = decodeForm(bytes, at, Math.min(nameEnd, at + MAX_NAME_BYTES))
  return { field: { name, value, isFile: false }, next: end + 1 }
}

/** Not UTF-8: U+FFFD. */
function decodeForm(bytes: Buffer, start: number, end: number): string {
  const plain = bytes.subarray(start, end)
  if (!plain.includes(PERCENT) && !plain.includes(PLUS)) return plain.toString('utf8')
  const decoded = Buffer.allocUnsafe(end - start)
  let length = 0
  for (let at = start; at < end; at++) {
    const byte = bytes[at]!
    const high = byte === PERCENT && at + 2 < end ? hexDigit(bytes[at + 1]!) : -1
    const low = high === -1 ? -1 : hexDigit(bytes[at + 2]!)
    if (low !== -1) at += 2
    decoded[length++] = low === -1 ? (byte === PLUS ? SPACE : byte) : high * 16 + low
  }
  return decoded.toString('utf8', 0, length)
}

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const letter = byte | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1
}

const AMPERSAND = 0x26
const EQUALS = 0x3d
const PERCENT = 0x25
const PLUS = 0x2b
const SPACE = 0x20

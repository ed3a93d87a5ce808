// Skips the inside of a JSON string, escapes included. Half of the bytes of a message are in strings, and the table of the grammar takes
// far longer for each.

import { ESCAPE, LAST_DIGIT, NEXT, STRING } from './grammar.ts'

const BACKSLASH = 0x5c
const QUOTE = 0x22
const LETTER_U = 0x75
/** Of \u00e9. */
const LONG_ESCAPE_BYTES = 6

/** Where the inside of a string ends, or an escape begins that does not end before `end`. */
export function endOfText(bytes: Buffer, from: number, end: number): number {
  let at = from
  for (;;) {
    at = endOfPlain(bytes, at, end)
    const length = at < end && bytes[at] === BACKSLASH ? escapeLength(bytes, at, end) : 0
    if (length === 0) return at
    at += length
  }
}

/** Where the characters that stand for themselves end. */
function endOfPlain(bytes: Buffer, from: number, end: number): number {
  let at = from
  for (; at < end; at++) {
    const byte = bytes[at]!
    if (byte === QUOTE || byte === BACKSLASH || byte < 0x20) break
  }
  return at
}

/** 0 if it is wrong, or goes on behind `end`: the table judges it byte by byte. */
function escapeLength(bytes: Buffer, at: number, end: number): number {
  if (at + 1 >= end) return 0
  if (NEXT[ESCAPE * 256 + bytes[at + 1]!] === STRING) return 2
  if (bytes[at + 1] !== LETTER_U || at + LONG_ESCAPE_BYTES > end) return 0
  for (let digit = at + 2; digit < at + LONG_ESCAPE_BYTES; digit++)
    if (NEXT[LAST_DIGIT * 256 + bytes[digit]!] !== STRING) return 0
  return LONG_ESCAPE_BYTES
}

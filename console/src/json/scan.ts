// JSON tokenizer that keeps the text: tokens are positions in it, so that numbers, escapes and order stay as sent. Works
// without recursion, for any depth.

export type TokenKind = 'open' | 'close' | 'comma' | 'colon' | 'string' | 'number' | 'word'

export interface Token {
  readonly kind: TokenKind
  readonly from: number
  readonly to: number
}

export interface ScanFailure {
  readonly at: number
  readonly line: number
  readonly column: number
  readonly message: string
}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const WORD = /true|false|null/y
const BLANK = /[ \t\r\n]*/y

/** The tokens, or where the text stops being JSON. Skips a byte order mark at the start. */
export function scanJson(text: string): readonly Token[] | ScanFailure {
  const tokens: Token[] = []
  const open: string[] = []
  /** What may follow: v value, k key or end, K key, : colon, e comma or end, V value or end, $ nothing. */
  let expect = 'v' as 'v' | 'V' | 'k' | 'K' | ':' | 'e' | '$'
  let at = text.charCodeAt(0) === 0xfeff ? 1 : 0
  const afterValue = () => {
    expect = open.length === 0 ? '$' : 'e'
  }
  for (;;) {
    at = endOf(BLANK, text, at)
    if (at >= text.length) break
    const sign = text[at]!
    const mayBeValue = expect === 'v' || expect === 'V'
    if ((sign === '{' || sign === '[') && mayBeValue) {
      open.push(sign)
      expect = sign === '{' ? 'k' : 'V'
      tokens.push({ kind: 'open', from: at, to: ++at })
    } else if (sign === '}' || sign === ']') {
      const fits = open.at(-1) === (sign === '}' ? '{' : '[') && (expect === 'e' || expect === 'k' || expect === 'V')
      if (!fits) return failure(text, at, `"${sign}" is not expected here`)
      open.pop()
      tokens.push({ kind: 'close', from: at, to: ++at })
      afterValue()
    } else if (sign === ',' && expect === 'e') {
      tokens.push({ kind: 'comma', from: at, to: ++at })
      expect = open.at(-1) === '{' ? 'K' : 'v'
    } else if (sign === ':' && expect === ':') {
      tokens.push({ kind: 'colon', from: at, to: ++at })
      expect = 'v'
    } else if (sign === '"' && (mayBeValue || expect === 'k' || expect === 'K')) {
      const to = endOfString(text, at)
      if (to === null)
        return failure(text, at, 'this string does not end, or contains a character that must be escaped')
      tokens.push({ kind: 'string', from: at, to })
      at = to
      if (mayBeValue) afterValue()
      else expect = ':'
    } else {
      const to = mayBeValue ? Math.max(endOf(NUMBER, text, at), endOf(WORD, text, at)) : at
      if (to === at) return failure(text, at, expected(expect))
      tokens.push({ kind: /[tfn]/.test(sign) ? 'word' : 'number', from: at, to })
      at = to
      afterValue()
    }
  }
  if (tokens.length === 0) return failure(text, 0, 'the text is empty')
  return expect === '$' ? tokens : failure(text, text.length, `the text ends too early: ${expected(expect)}`)
}

export function isFailure(scanned: readonly Token[] | ScanFailure): scanned is ScanFailure {
  return !Array.isArray(scanned)
}

function endOf(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : at
}

/** Character by character: a regular expression over a megabyte exhausts the engine's stack. */
function endOfString(text: string, from: number): number | null {
  for (let at = from + 1; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === 0x22) return at + 1
    if (code < 0x20) return null
    if (code !== 0x5c) continue
    const next = text[at + 1] ?? ''
    if (next === 'u' ? !/^[0-9a-fA-F]{4}$/.test(text.slice(at + 2, at + 6)) : !'"\\/bfnrt'.includes(next)) return null
    at += next === 'u' ? 5 : 1
  }
  return null
}

function expected(expect: string): string {
  switch (expect) {
    case 'k':
      return 'a field name in double quotes, or "}", is expected'
    case 'K':
      return 'a field name in double quotes is expected'
    case ':':
      return '":" is expected'
    case 'e':
      return 'a comma or a closing bracket is expected'
    case '$':
      return 'nothing more is expected after the end'
    default:
      return 'a value is expected'
  }
}

function failure(text: string, at: number, message: string): ScanFailure {
  const before = text.slice(0, at)
  const line = before.split('\n').length
  return { at, line, column: at - before.lastIndexOf('\n'), message }
}

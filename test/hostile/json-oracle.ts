// RFC 8259 by hand, over bytes, without JSON.parse: says whether a body is one JSON object, and whether its refs are usable.
// Walks without recursion.

export interface JsonVerdict {
  readonly verdict: 'fine' | 'invalid_json' | 'invalid_payload'
  readonly hasSourceRef: boolean
}

const INVALID: JsonVerdict = { verdict: 'invalid_json', hasSourceRef: false }
const SPACE = /[ \t\n\r]*/y
const TEXT = /"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y
const SCALAR = /(?:-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null)/y
const ESCAPES: Record<string, string> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }
const MAX_REF = 512

export function judgeJson(bytes: Uint8Array): JsonVerdict {
  const text = decode(bytes)
  const refs = text === null ? null : new Reader(text.replace(/^\ufeff/, '')).read()
  if (!refs) return INVALID
  const verdicts = ['source_ref', 'channel_ref'].map((name) => judgeRef(refs.get(name)))
  return {
    verdict: verdicts.includes('unusable') ? 'invalid_payload' : 'fine',
    hasSourceRef: verdicts[0] === 'usable',
  }
}

function decode(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return null
  }
}

/** The raw text of a value: a string with its quotes, a scalar, or the bracket that a list or an object begins with. */
function judgeRef(raw: string | undefined): 'absent' | 'usable' | 'unusable' {
  if (raw === undefined || raw === 'null') return 'absent'
  if (/^-?[0-9]+$/.test(raw)) return raw === '-0' || raw.length > MAX_REF ? 'unusable' : 'usable'
  if (!raw.startsWith('"')) return 'unusable'
  const value = unquote(raw)
  if (/^\s*$/u.test(value)) return 'absent'
  const isLone = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(value)
  return value.length > MAX_REF || value.includes('\0') || isLone ? 'unusable' : 'usable'
}

function unquote(raw: string): string {
  return raw
    .slice(1, -1)
    .replace(/\\(?:u([0-9a-fA-F]{4})|(.))/g, (_all, code?: string, letter?: string) =>
      code === undefined ? (ESCAPES[letter!] ?? letter!) : String.fromCharCode(Number.parseInt(code, 16)),
    )
}

/** What may come next. */
type State = 'value' | 'first key' | 'key' | 'first item' | 'after'

class Reader {
  readonly #text: string
  readonly #open: ('{' | '[')[] = []
  readonly #refs = new Map<string, string>()
  #at = 0
  #key = ''

  constructor(text: string) {
    this.#text = text
  }

  /** The fields of the object and how their values are written; null if it is none. */
  read(): Map<string, string> | null {
    this.#take(SPACE)
    if (this.#text[this.#at] !== '{') return null
    let state: State | null = 'value'
    do {
      state = this.#step(state)
      this.#take(SPACE)
    } while (state !== null && this.#open.length > 0)
    return state !== null && this.#at === this.#text.length ? this.#refs : null
  }

  /** One step; null where the grammar has no such thing. */
  #step(state: State): State | null {
    const letter = this.#text[this.#at]
    if (state === 'after') return this.#close(letter) ?? this.#comma(letter)
    if (state === 'first item' && letter === ']') return this.#close(letter)
    if (state === 'first key' && letter === '}') return this.#close(letter)
    if (state === 'first key' || state === 'key') return this.#takeKey()
    if (letter === '{' || letter === '[') {
      this.#note(letter)
      this.#open.push(letter)
      this.#at += 1
      return letter === '{' ? 'first key' : 'first item'
    }
    const raw = this.#take(letter === '"' ? TEXT : SCALAR)
    if (raw === null) return null
    this.#note(raw)
    return 'after'
  }

  #close(letter: string | undefined): State | null {
    const open = this.#open.at(-1)
    if (!((open === '{' && letter === '}') || (open === '[' && letter === ']'))) return null
    this.#open.pop()
    this.#at += 1
    return 'after'
  }

  #comma(letter: string | undefined): State | null {
    if (letter !== ',') return null
    this.#at += 1
    return this.#open.at(-1) === '{' ? 'key' : 'value'
  }

  #takeKey(): State | null {
    const raw = this.#take(TEXT)
    this.#take(SPACE)
    if (raw === null || this.#text[this.#at] !== ':') return null
    this.#at += 1
    this.#key = unquote(raw)
    return 'value'
  }

  #note(raw: string): void {
    if (this.#open.length === 1 && this.#open[0] === '{') this.#refs.set(this.#key, raw)
  }

  #take(pattern: RegExp): string | null {
    pattern.lastIndex = this.#at
    const match = pattern.exec(this.#text)
    if (match === null) return null
    this.#at += match[0].length
    return match[0]
  }
}

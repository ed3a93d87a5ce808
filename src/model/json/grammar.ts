// The grammar of JSON (RFC 8259) as a table: in each state, a byte leads to the next state or to an action of the scanner. Every
// byte is one step, so that a scan can stop before any byte and go on there.

const STATES = [
  ...['value', 'first element', 'first key', 'key', 'colon', 'after value'],
  ...['string', 'escape', 'hex 1', 'hex 2', 'hex 3', 'hex 4'],
  ...['minus', 'zero', 'integer', 'point', 'fraction', 'exponent mark', 'exponent sign', 'exponent'],
  ...['t', 'tr', 'tru', 'f', 'fa', 'fal', 'fals', 'n', 'nu', 'nul'],
]
const numberOf = (state: string): number => STATES.indexOf(state)

export const VALUE = numberOf('value')
export const FIRST_ELEMENT = numberOf('first element')
export const FIRST_KEY = numberOf('first key')
export const KEY = numberOf('key')
export const COLON = numberOf('colon')
export const AFTER_VALUE = numberOf('after value')
export const STRING = numberOf('string')
export const ESCAPE = numberOf('escape')
/** Of an escape with four digits. */
export const LAST_DIGIT = numberOf('hex 4')

/** Actions are larger than every state. */
export const FIRST_ACTION = 32
export const OPEN_OBJECT = 32
export const OPEN_ARRAY = 33
export const CLOSE_OBJECT = 34
export const CLOSE_ARRAY = 35
export const COMMA = 36
export const BEGIN_KEY = 37
export const BEGIN_STRING = 38
export const END_STRING = 39
export const WRONG = 40
/** The first byte of a number or a literal: added to the state that it leads to. */
export const BEGIN_SCALAR = 64

/** States in which the text may end, if nothing is open. */
export const MAY_END: ReadonlySet<number> = new Set(
  ['after value', 'zero', 'integer', 'fraction', 'exponent'].map(numberOf),
)

type Row = Readonly<Record<string, number>>

const DIGITS = '0123456789'
const HEX = `${DIGITS}abcdefABCDEF`
const SPACE = ' \t\n\r'
const row = (...cells: (readonly [bytes: string, next: number])[]): Row =>
  Object.fromEntries(cells.flatMap(([bytes, next]) => Array.from(bytes, (byte) => [byte, next])))
const to = (bytes: string, state: string) => [bytes, numberOf(state)] as const
const begin = (bytes: string, state: string) => [bytes, BEGIN_SCALAR + numberOf(state)] as const

const VALUES = row(
  ['{', OPEN_OBJECT],
  ['[', OPEN_ARRAY],
  ['"', BEGIN_STRING],
  begin('-', 'minus'),
  begin('0', 'zero'),
  begin('123456789', 'integer'),
  begin('t', 't'),
  begin('f', 'f'),
  begin('n', 'n'),
)
const AFTER = row(to(SPACE, 'after value'), [',', COMMA], ['}', CLOSE_OBJECT], [']', CLOSE_ARRAY])

const ROWS: Readonly<Record<string, Row>> = {
  value: { ...row(to(SPACE, 'value')), ...VALUES },
  'first element': { ...row(to(SPACE, 'first element'), [']', CLOSE_ARRAY]), ...VALUES },
  'first key': row(to(SPACE, 'first key'), ['"', BEGIN_KEY], ['}', CLOSE_OBJECT]),
  key: row(to(SPACE, 'key'), ['"', BEGIN_KEY]),
  colon: row(to(SPACE, 'colon'), to(':', 'value')),
  'after value': AFTER,
  escape: row(to('"\\/bfnrt', 'string'), to('u', 'hex 1')),
  'hex 1': row(to(HEX, 'hex 2')),
  'hex 2': row(to(HEX, 'hex 3')),
  'hex 3': row(to(HEX, 'hex 4')),
  'hex 4': row(to(HEX, 'string')),
  minus: row(to('0', 'zero'), to('123456789', 'integer')),
  zero: { ...AFTER, ...row(to('.', 'point'), to('eE', 'exponent mark')) },
  integer: { ...AFTER, ...row(to(DIGITS, 'integer'), to('.', 'point'), to('eE', 'exponent mark')) },
  point: row(to(DIGITS, 'fraction')),
  fraction: { ...AFTER, ...row(to(DIGITS, 'fraction'), to('eE', 'exponent mark')) },
  'exponent mark': row(to('+-', 'exponent sign'), to(DIGITS, 'exponent')),
  'exponent sign': row(to(DIGITS, 'exponent')),
  exponent: { ...AFTER, ...row(to(DIGITS, 'exponent')) },
  ...literal('true'),
  ...literal('false'),
  ...literal('null'),
}

/** One state for each beginning of the word. */
function literal(word: string): Record<string, Row> {
  const steps = Array.from(word.slice(1), (letter, at): [string, Row] => {
    const next = at + 2 === word.length ? 'after value' : word.slice(0, at + 2)
    return [word.slice(0, at + 1), row(to(letter, next))]
  })
  return Object.fromEntries(steps)
}

/** The next step for a state and a byte, at `state * 256 + byte`. */
export const NEXT = new Uint8Array(STATES.length * 256).fill(WRONG)
for (const [state, cells] of Object.entries(ROWS)) {
  for (const [byte, next] of Object.entries(cells)) NEXT[numberOf(state) * 256 + byte.charCodeAt(0)] = next
}
// In a string, every byte but the control characters stands for itself; that the bytes are UTF-8 is checked apart.
NEXT.fill(STRING, STRING * 256 + 0x20, STRING * 256 + 256)
NEXT[STRING * 256 + 0x22] = END_STRING
NEXT[STRING * 256 + 0x5c] = numberOf('escape')

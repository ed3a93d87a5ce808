// Seeded texts for comparing a JSON reader with JSON.parse: valid ones full of the names that intake looks for, mutations of them,
// and tokens in any order.

import type { Random } from '../../prove/random.ts'

const KEYS = [
  ...[
    'source_ref',
    'channel_ref',
    'contact',
    'message',
    'meta',
    'name',
    'email',
    'type',
    'text',
    'form_id',
    'page_url',
  ],
  ...[
    'source\\u005fref',
    '\\u0063ontact',
    'sourceRef',
    'source-ref',
    'CHANNEL_REF',
    '__proto__',
    'a',
    '',
    'ключ',
    '\\"',
    '😀',
  ],
]
const SCALARS = [
  ...['null', 'true', 'false', '0', '-0', '7', '-7', '12345678901234567890', '1.5', '1e3', '-1E-2', '1e999', '0.0'],
  ...[
    '""',
    '" "',
    '"a"',
    '"cf:1:2"',
    '"\\u0000"',
    '"\\ud800"',
    '"\\ud83d\\ude00"',
    '"\\ude00\\ud83d"',
    '"😀é"',
    '"\\n\\t\\/\\\\"',
  ],
]
const SPACES = ['', '', '', '', ' ', '\n', '\r\n', '\t', ' \r ']
const TOKENS = [
  ...[
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"',
    '"a"',
    '\\',
    '\\u',
    '00',
    '-',
    '+',
    '.',
    'e',
    'E',
    'tru',
    'true',
    'nul',
    'null',
    'false',
  ],
  ...[
    '\n',
    '\r\n',
    ' ',
    '\t',
    '\u2028',
    '\ufeff',
    '\0',
    '\u001f',
    '\u007f',
    'é',
    '😀',
    '1',
    '-0',
    '0x1',
    'NaN',
    '/*',
    "'",
  ],
]
const BYTES = [0x00, 0x1f, 0x22, 0x2c, 0x5c, 0x7d, 0x80, 0xbf, 0xc0, 0xc3, 0xe2, 0xed, 0xf0, 0xf5, 0xff]

export function jsonCase(random: Random): Buffer {
  const kind = random.below(10)
  if (kind === 0) return Buffer.from(Array.from({ length: random.below(12) }, () => random.pick(TOKENS)).join(''))
  const text = (random.below(20) === 0 ? '\ufeff' : '') + (kind < 9 ? object(random, 0) : value(random, 0))
  const bytes = Buffer.from(random.pick(SPACES) === '\n' ? `\n${text} ` : text)
  return kind < 6 ? bytes : mutate(random, bytes)
}

function value(random: Random, depth: number): string {
  const kind = random.below(depth > 4 ? 6 : 10)
  if (kind < 6) return random.pick(SCALARS)
  if (kind < 8) return object(random, depth + 1)
  const items = Array.from({ length: random.below(4) }, () => spaced(random, value(random, depth + 1)))
  return `[${items.join(',')}${items.length === 0 ? random.pick(SPACES) : ''}]`
}

function object(random: Random, depth: number): string {
  const members = Array.from(
    { length: random.below(depth === 0 ? 7 : 4) },
    () => `${spaced(random, `"${random.pick(KEYS)}"`)}:${spaced(random, value(random, depth))}`,
  )
  return `{${members.join(',')}${members.length === 0 ? random.pick(SPACES) : ''}}`
}

function spaced(random: Random, text: string): string {
  return random.pick(SPACES) + text + random.pick(SPACES)
}

/** Cut, doubled, removed or changed somewhere. */
function mutate(random: Random, bytes: Buffer): Buffer {
  const at = random.below(bytes.length + 1)
  const end = Math.min(bytes.length, at + random.below(4))
  const [before, piece, after] = [bytes.subarray(0, at), bytes.subarray(at, end), bytes.subarray(end)]
  const kind = random.below(5)
  if (kind === 0) return Buffer.from(before)
  if (kind === 1) return Buffer.concat([before, after])
  if (kind === 2) return Buffer.concat([before, piece, piece, after])
  if (kind === 3) return Buffer.concat([before, Buffer.from([random.pick(BYTES)]), after])
  return Buffer.concat([before, Buffer.from(random.pick(TOKENS)), after])
}

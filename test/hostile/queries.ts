// Queries of the list of events: every parameter with values it takes and values it does not, in any number and order, and
// the answer by the rules of docs/processing/inbox.md.

import fc from 'fast-check'
import { type Expected, type HostileCase, refusal, wireOf } from './hostile-case.ts'
import { TEXTS, UNUSABLE } from './texts.ts'

interface Parameter {
  readonly good: readonly string[]
  readonly bad: readonly string[]
}

const cursor = (json: string): string => Buffer.from(json).toString('base64url')
/** Well-formed, for an id that was never given out. */
const CURSOR_AHEAD = cursor('{"id":999999999999999}')
const ofText = (max: number, min = 1): Parameter => ({
  good: TEXTS.filter(({ length }) => length >= min && length <= max).map(encodeURIComponent),
  bad: ['', '%00', 'a%00', ...UNUSABLE.map(encodeURIComponent), encodeURIComponent('\u00e4'.repeat(max + 1))],
})
const TIMES: Parameter = {
  good: ['2026-11-15T12:00Z', '0000-01-01T00:00:00Z', '9999-12-31T23:59:59.999-23:59', '2024-02-29T00:00:00.1%2B01:00'],
  bad: [
    '',
    '2026-02-30T00:00Z',
    '2026-11-15',
    '2026-11-15T12:00',
    '2026-11-15T12:00:60Z',
    '2026-11-15T25:00Z',
    '1e12',
    'now',
    '2026-11-15T12:00+01:00',
    '-000001-01-01T00:00Z',
    '%00',
  ],
}

const PARAMETERS: Record<string, Parameter> = {
  limit: {
    good: ['1', '200', '%31', '007'],
    bad: ['', '0', '201', '-1', '1.0', '1e1', '0x1', '+1', '%201', '1%00', '\u0661', '9'.repeat(30), 'NaN'].map(
      (text) => encodeURI(text).replaceAll('%25', '%'),
    ),
  },
  cursor: {
    good: [cursor('{"id":1}'), CURSOR_AHEAD, cursor('{"id":0}')],
    bad: [
      ...['', 'x', '%00', `${cursor('{"id":1}')}%3D`, `${cursor('{"id":1}')}x`, '!'.repeat(200), 'eyJpZCI6MX0%0A'],
      ...[
        '{"id":-1}',
        '{"id":1e20}',
        '{"id":"1"}',
        '{"id":1.5}',
        '{"at":1}',
        '{"id":1,"x":1}',
        '{ "id":1}',
        '[1]',
        'null',
        '{"id":1,"at":null}',
        '{"id":1;}',
      ].map(cursor),
      ...['{"id":"1\' or 1=1"}', '{"__proto__":{"id":1}}', '{"id":[1]}'].map(cursor),
    ],
  },
  q: {
    good: [
      'a',
      'zo%C3%AB',
      '%E6%9D%B1%E4%BA%AC',
      "o'brien",
      'a%25b',
      '%F0%9F%98%80',
      'x%27%3B--',
      '1',
      'a+b',
      '%ff1',
      'a%zz',
    ],
    bad: [
      '',
      '%20',
      '%00',
      'a%00',
      '%27',
      '%25',
      '%E2%80%AE',
      '+',
      'a'.repeat(201),
      Array.from({ length: 17 }, (_, n) => `w${n}`).join('+'),
    ],
  },
  channel_ref: ofText(512),
  source_ref: ofText(512),
  contact_email: ofText(320),
  message_type: ofText(64),
  key_id: ofText(32),
  received_after: TIMES,
  received_before: TIMES,
  kind: { good: ['event', 'revision'], bad: ['', 'Event', 'resend', 'event%00', '%'] },
  state: { good: ['pending', 'leased', 'done', 'dead'], bad: ['', 'DONE', 'unknown', "done'"] },
  subscription: { good: ['default'], bad: ['', 'A', '%00', '../x', 'x'.repeat(65), "'"] },
  scope: { good: ['', 'cf', 'a.b:c-d_e'], bad: ['A', '%00', ' a'.replace(' ', '%20'), "'", 'x'.repeat(65), '-a'] },
}
const NAMES = Object.keys(PARAMETERS)
const UNKNOWN = [
  '__proto__',
  'constructor',
  'toString',
  'Limit',
  'limit[]',
  'limit%00',
  '%20limit',
  '',
  'token',
  'a;b',
  '$where',
]

interface Pair {
  readonly name: string
  readonly value: string
  readonly isGood: boolean
}

const pair: fc.Arbitrary<Pair> = fc.constantFrom(...NAMES).chain((name) => {
  const { good, bad } = PARAMETERS[name]!
  const of = (values: readonly string[], isGood: boolean) =>
    fc.constantFrom(...values).map((value) => ({ name, value, isGood }))
  return fc.oneof({ arbitrary: of(good, true), weight: 7 }, { arbitrary: of(bad, false), weight: 1 })
})
const stranger = fc.constantFrom(...UNKNOWN).map((name): Pair => ({ name, value: '1', isGood: false }))

export const anyQuery: fc.Arbitrary<readonly Pair[]> = fc.array(
  fc.oneof({ arbitrary: pair, weight: 30 }, { arbitrary: stranger, weight: 1 }),
  { minLength: 1, maxLength: 5 },
)

export function queryCase(pairs: readonly Pair[], token: string): HostileCase {
  const query = pairs.map(({ name, value }) => `${name}=${value}`).join('&')
  const headers = ['Host: intray.test', `Authorization: Bearer ${token}`]
  return {
    name: `?${query}`,
    pieces: [wireOf(`GET /v1/inbox/events?${query} HTTP/1.1`, headers)],
    answers: [predict(pairs)],
    stored: [],
    connection: 'kept',
  }
}

function predict(pairs: readonly Pair[]): Expected {
  const bad = refusal(400, 'invalid_request')
  const values = new Map(pairs.map(({ name, value }) => [name, value]))
  if (values.size !== pairs.length || pairs.some(({ isGood }) => !isGood)) return bad
  if (values.has('subscription') && !values.has('state')) return bad
  if (values.has('cursor') && isByTime(values)) return bad
  return values.get('cursor') === CURSOR_AHEAD ? refusal(409, 'cursor_ahead') : { status: 200, error: null }
}

/** A list that a time leads through has cursors of its own. */
function isByTime(values: ReadonlyMap<string, string>): boolean {
  const leads = ['source_ref', 'q', 'contact_email', 'channel_ref'].some((name) => values.has(name))
  const isNarrow = values.get('kind') === 'revision' || (values.get('state') ?? 'done') !== 'done'
  return !leads && !isNarrow && (values.has('received_after') || values.has('received_before'))
}

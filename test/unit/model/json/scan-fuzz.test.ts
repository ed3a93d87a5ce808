import assert from 'node:assert/strict'
import { isUtf8 } from 'node:buffer'
import { test } from 'node:test'
import { seededRandom } from '../../../../prove/random.ts'
import { envelopeOf } from '../../../../src/intake/envelope.ts'
import { scanMessage } from '../../../../src/model/message-scan.ts'
import { jsonCase } from '../../../support/json-cases.ts'

/** `FUZZ_CASES=1000000` takes about a minute. */
const CASES = Number(process.env.FUZZ_CASES ?? 30_000)
const SEED = Number(process.env.FUZZ_SEED ?? 29)

interface Read {
  readonly refs?: readonly unknown[]
  readonly warnings?: readonly string[]
  /** What is wrong with it: a refused field, or not JSON. */
  readonly wrong?: string
}

/** What intake is to find, found with JSON.parse. */
function reference(bytes: Buffer): Read & { readonly place?: string } {
  if (!isUtf8(bytes)) return { wrong: 'invalid_json' }
  const text = bytes.toString().replace(/^\ufeff/, '')
  const sources = new Map<unknown, Map<string, string>>()
  let body: unknown
  try {
    body = JSON.parse(text, function (this: unknown, key: string, value: unknown, context?: { source?: string }) {
      if (typeof value === 'number') {
        sources.set(this, (sources.get(this) ?? new Map<string, string>()).set(key, context?.source ?? ''))
      }
      // As it is, but for `undefined`, which would take the key away.
      return value
    })
  } catch (error) {
    const [, line, column] = / at position \d+ \(line (\d+) column (\d+)\)$/.exec((error as Error).message) ?? []
    return { wrong: 'invalid_json', ...(line ? { place: `at line ${line}, column ${column}` } : {}) }
  }
  if (!isObject(body)) return { wrong: 'invalid_json' }
  const top = body
  const complaints: string[] = []
  const refs = ['source_ref', 'channel_ref'].map((name) => {
    const value = own(top, name)
    if (typeof value === 'number') {
      const source = sources.get(top)?.get(name) ?? ''
      if (/^-?\d+$/.test(source) && source !== '-0') return source
      complaints.push(`/${name} not_an_integer`)
    } else if (value !== null && typeof value !== 'string') complaints.push(`/${name} not_a_string`)
    else if (value === null || value.trim() === '') return null
    else if (value.includes('\0') || !value.isWellFormed()) complaints.push(`/${name} invalid_character`)
    else return value
    return null
  })
  return complaints.length > 0 ? { wrong: complaints.join() } : { refs, warnings: referenceWarnings(top).toSorted() }
}

const FIELDS = { contact: ['name', 'email'], message: ['type', 'text'], meta: ['form_id', 'page_url'] }

function referenceWarnings(body: Record<string, unknown>): string[] {
  const warnings: string[] = []
  for (const [name, inner] of Object.entries(FIELDS)) {
    const outer = own(body, name)
    if (outer === null) continue
    if (!isObject(outer)) warnings.push(`/${name} object ${nameOf(outer)}`)
    for (const key of isObject(outer) ? inner : []) {
      const value = own(outer as Record<string, unknown>, key)
      const isFine = key === 'form_id' ? Number.isInteger(value) : typeof value === 'string'
      const expected = key === 'form_id' ? 'integer' : 'string'
      if (value !== null && !isFine) warnings.push(`/${name}/${key} ${expected} ${nameOf(value)}`)
    }
  }
  return warnings
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const own = (object: Record<string, unknown>, key: string): unknown =>
  Object.hasOwn(object, key) ? (object[key] ?? null) : null
const nameOf = (value: unknown): string => (Array.isArray(value) ? 'array' : typeof value)

/** The same, found by the scanner in slices of any size. */
function scanned(bytes: Buffer, sliceBytes: number): Read & { readonly message?: string } {
  const scan = scanMessage(bytes)
  for (let turns = 0; !scan.isDone; turns++) {
    assert.ok(scan.run(sliceBytes) <= sliceBytes, 'no more than was allowed')
    assert.ok(turns <= 2 * bytes.length + 2, 'every slice makes progress')
  }
  const read = envelopeOf(scan)
  if ('envelope' in read) {
    const { sourceRef, channelRef, warnings } = read.envelope
    const types = warnings.filter(({ expected }) => !expected.endsWith('_ref'))
    return {
      refs: [sourceRef, channelRef],
      warnings: types.map(({ path, expected, got }) => `${path} ${expected} ${got}`).toSorted(),
    }
  }
  const { code, fields, message } = read.problem
  return {
    wrong: fields?.map((field) => `${field.path} ${field.code}`).join() ?? code,
    ...(message ? { message } : {}),
  }
}

test(`${CASES} texts: the scanner and JSON.parse agree on verdict, place, references and types`, () => {
  const random = seededRandom(SEED)
  let [accepted, refused, places] = [0, 0, 0]
  for (let number = 0; number < CASES; number++) {
    const bytes = jsonCase(random)
    const expected = reference(bytes)
    const { message = '', ...found } = scanned(bytes, random.below(4) === 0 ? 4 + random.below(30) : 65_536)
    const { place, ...rest } = expected
    const shown = `case ${number}: ${JSON.stringify(bytes.toString('latin1'))}`
    assert.deepEqual(found, rest, shown)
    // JSON.parse says nothing of the place for some mistakes, and takes the end of the text for one.
    if (place && !message.includes('it ends too early')) {
      assert.ok(message.includes(`${place}.`), `${shown}: ${message}, not ${place}`)
      places += 1
    }
    if (found.wrong === undefined) accepted += 1
    else refused += 1
  }
  assert.ok(accepted > CASES / 5 && refused > CASES / 5 && places > CASES / 20, `${accepted} ${refused} ${places}`)
})

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { seededRandom } from '../../../../prove/random.ts'
import { JsonPointers, pointerProblem, type StringsBelow } from '../../../../src/model/json/pointer.ts'
import { PointerScan } from '../../../../src/model/json/pointer-scan.ts'
import { jsonCase } from '../../../support/json-cases.ts'

const ALL = 1_000_000

function scanned(text: string | Buffer, pointers: JsonPointers, sliceBytes = ALL, maxBytes = ALL): PointerScan {
  const bytes = Buffer.from(text)
  const scan = new PointerScan(bytes, pointers, { maxBytes })
  for (let turns = 0; !scan.isDone; turns++) {
    assert.ok(scan.run(sliceBytes) <= sliceBytes, 'no more than was allowed')
    assert.ok(turns <= 4 * bytes.length + 4, 'every slice makes progress')
  }
  return scan
}

const read = (text: string | Buffer, pointer: string, sliceBytes?: number) =>
  scanned(text, new JsonPointers([pointer]), sliceBytes).textOf(pointer, ALL)

/** CPU time of a scan, the least of three. */
function scanCost(text: string, pointers: JsonPointers): number {
  const costs = [1, 2, 3].map(() => {
    const from = process.cpuUsage()
    scanned(text, pointers)
    const { user, system } = process.cpuUsage(from)
    return user + system
  })
  return Math.min(...costs)
}

test('many places cost a scan little more than one, whatever the keys of the text are', () => {
  const text = `{${Array.from({ length: 30_000 }, () => '"zzz":""').join(',')}}`
  const names = Array.from({ length: 250 }, (_, n) => `a${n.toString(36).padStart(2, '0')}`)
  const one = scanCost(text, new JsonPointers(['/aaa']))
  const many = scanCost(text, new JsonPointers(names.map((name) => `/${name}`)))
  const collected = scanCost(text, new JsonPointers([], [{ pointer: '', keys: names }]))
  assert.ok(many < 20 * one, `${many} µs, and ${one} µs for one place`)
  assert.ok(collected < 20 * one, `${collected} µs, and ${one} µs for one place`)
})

describe('JSON Pointers', () => {
  test('the examples of RFC 6901', () => {
    const text = '{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\\\j":5,"k\\"l":6," ":7,"m~n":8}'
    const values = { '/foo/0': 'bar', '/': '0', '/a~1b': '1', '/c%d': '2', '/e^f': '3', '/g|h': '4' }
    const escaped = { '/i\\j': '5', '/k"l': '6', '/ ': '7', '/m~0n': '8' }
    for (const [pointer, value] of Object.entries({ ...values, ...escaped }))
      assert.equal(read(text, pointer), value, pointer)
    const scan = scanned(text, new JsonPointers(['', '/foo', '/foo/-', '/foo/2', '/foo/00', '/foo/01']))
    assert.equal(scan.typeOf(''), 'object')
    assert.equal(scan.typeOf('/foo'), 'array')
    for (const none of ['/foo/-', '/foo/2', '/foo/00', '/foo/01']) assert.equal(scan.typeOf(none), null, none)
  })

  test('numbers are their source text', () => {
    for (const number of ['9007199254740993', '-0', '1e400', '0.1000', '123456789012345678901234567890']) {
      assert.equal(read(`{"id":${number}}`, '/id'), number)
      assert.equal(read(number, ''), number)
      assert.equal(read(`[ ${number} ,1]`, '/0'), number)
    }
  })

  test('of a repeated key the last counts, with all that is below it', () => {
    assert.equal(read('{"a":1,"a":2}', '/a'), '2')
    assert.equal(read('{"a":{"b":1},"a":{"c":2}}', '/a/b'), null)
    assert.equal(read('{"a":{"b":1},"a":7}', '/a/b'), null)
    assert.equal(read('{"a":{"b":1},"a":{"b":3}}', '/a/b'), '3')
  })

  test('escaped keys are compared decoded', () => {
    assert.equal(read('{"\\"":null,"\\"":{"x":1},"a":2}', '/"/x'), '1')
    assert.equal(read('{"\\\\":1,"\\"":2}', '/\\'), '1')
    assert.equal(read('{"\\u0061":1}', '/a'), '1')
  })

  test('a key of an object may be a number, and an element has no name', () => {
    assert.equal(read('{"a":{"0":"x"}}', '/a/0'), 'x')
    assert.equal(read('{"a":["x"]}', '/a/0'), 'x')
    assert.equal(read('{"a":["x"]}', '/a/x'), null)
  })

  test('null, objects and arrays have no text, but a type', () => {
    const scan = scanned('{"a":null,"b":{},"c":[],"d":true,"e":""}', new JsonPointers(['/a', '/b', '/c', '/d', '/e']))
    assert.deepEqual(
      ['/a', '/b', '/c', '/d', '/e'].map((pointer) => [scan.typeOf(pointer), scan.textOf(pointer, ALL)]),
      [
        ['null', null],
        ['object', null],
        ['array', null],
        ['boolean', 'true'],
        ['string', ''],
      ],
    )
  })

  test('a text that is no JSON is found, with its place', () => {
    for (const text of ['', '{', '{"a":1,}', '[1 2]', '{"a":"\\x"}', 'nul'])
      assert.notEqual(scanned(text, new JsonPointers(['/a'])).problem, null, text)
    assert.deepEqual(scanned('{\n"a":x}', new JsonPointers(['/a'])).problem, { line: 2, column: 5 })
    assert.equal(scanned(Buffer.from([0x22, 0xff, 0x22]), new JsonPointers([])).problem, 'not_utf8')
  })

  test('a hundred thousand brackets need no stack', () => {
    const depth = 100_000
    assert.equal(read(`${'['.repeat(depth)}1${']'.repeat(depth)}`, '/0/0/0/1'), null)
    assert.equal(read(`{"x":${'['.repeat(depth)}${']'.repeat(depth)},"a":"end"}`, '/a'), 'end')
  })

  test('a long string is cut between characters, and never inside of an escape', () => {
    const text = '😀é\\u00e9\\n'.repeat(50)
    const whole = JSON.parse(`"${text}"`) as string
    const scan = scanned(`{"a":"${text}"}`, new JsonPointers(['/a']))
    for (let maxBytes = 12; maxBytes < 200; maxBytes++) {
      const cut = scan.textOf('/a', maxBytes)!
      assert.ok(whole.startsWith(cut) && cut.isWellFormed(), `${maxBytes}: ${cut}`)
      assert.ok(Buffer.byteLength(cut) > maxBytes / 4 - 6 && Buffer.byteLength(cut) <= maxBytes)
    }
    assert.equal(scan.textOf('/a', ALL), whole)
  })

  test('a limit counts what is outside of strings; the string that begins before it is whole', () => {
    const pointers = new JsonPointers(['/a', '/b'])
    const limited = (maxBytes: number) => {
      const scan = new PointerScan(Buffer.from(`{"a":"${'x'.repeat(500)}","b":1}`), pointers, {
        isValid: true,
        maxBytes,
      })
      while (!scan.isDone) scan.run(16)
      return [scan.textOf('/a', ALL)?.length ?? null, scan.textOf('/b', ALL)]
    }
    assert.deepEqual(limited(1), [null, null])
    assert.deepEqual(limited(4), [500, null])
    assert.deepEqual(limited(50), [500, '1'])
  })

  test('bad pointers are explained', () => {
    for (const good of ['', '/', '/a', '/~0~1', '/0/1']) assert.equal(pointerProblem(good), null, good)
    assert.match(pointerProblem('a')!, /does not begin with a slash/)
    assert.match(pointerProblem('/a~2')!, /~ is not followed/)
    assert.match(pointerProblem('/a~')!, /~ is not followed/)
    assert.equal(pointerProblem('/a'.repeat(32)), null)
    assert.match(pointerProblem('/a'.repeat(33))!, /more than 32 steps/)
  })
})

describe('strings below a place', () => {
  const collect = (text: string, strings: StringsBelow, sliceBytes?: number) =>
    scanned(text, new JsonPointers([], [strings]), sliceBytes).stringsOf(strings, ALL)

  test('come in order, without keys', () => {
    const text = '{"x":"no","a":{"k":"1","l":["2",{"m":"3"},4,null]},"y":"no"}'
    assert.deepEqual(collect(text, { pointer: '/a', keys: null }), ['1', '2', '3'])
    assert.deepEqual(collect(text, { pointer: '/a/l', keys: null }), ['2', '3'])
    assert.deepEqual(collect(text, { pointer: '', keys: null }), ['no', '1', '2', '3', 'no'])
    assert.deepEqual(collect(text, { pointer: '/x', keys: null }), ['no'])
    assert.deepEqual(collect('"alone"', { pointer: '', keys: null }), ['alone'])
  })

  test('may be those of some keys, in arrays too', () => {
    const text =
      '[{"type":"t","text":"A"},{"type":"c","choices":{"ids":["x"],"labels":["B","C"]}},{"text":{"type":"no"}}]'
    assert.deepEqual(collect(text, { pointer: '', keys: ['text', 'labels'] }), ['A', 'B', 'C'])
    assert.deepEqual(collect(text, { pointer: '', keys: ['nothing'] }), [])
  })

  test('are bounded in number and size', () => {
    const many = collect(`[${Array.from({ length: 5000 }, () => '"a"').join()}]`, { pointer: '', keys: null })
    assert.equal(many.length, 2000)
    const large = collect(`[${Array.from({ length: 50 }, () => `"${'a'.repeat(10_000)}"`).join()}]`, {
      pointer: '',
      keys: null,
    })
    assert.ok(large.length >= 9 && large.length <= 11, `${large.length}`)
  })
})

/** `FUZZ_CASES=1000000` takes about two minutes. */
const CASES = Number(process.env.FUZZ_CASES ?? 15_000)
const SEED = Number(process.env.FUZZ_SEED ?? 33)

/** Not the key `"`: JSON.parse of Node 26.10 sometimes reads `"\\""` as a backslash. */
const POINTERS = [
  ...[
    '',
    '/a',
    '/source_ref',
    '/contact',
    '/contact/name',
    '/contact/contact',
    '/message/0',
    '/message/1/name',
    '/meta/a/a',
  ],
  ...['/__proto__', '/ключ', '/😀', '/', '/0', '/1/a', '/contact/0/0', '/message/text/type', '/name/name/name/name'],
]

test(`${CASES} texts: pointers find what JSON.parse finds`, () => {
  const random = seededRandom(SEED)
  const pointers = new JsonPointers(POINTERS, [{ pointer: '', keys: null }])
  let [valid, invalid, values] = [0, 0, 0]
  for (let number = 0; number < CASES; number++) {
    const bytes = jsonCase(random)
    const scan = scanned(bytes, pointers, random.below(3) === 0 ? 8 + random.below(20) : ALL)
    const shown = `case ${number}: ${JSON.stringify(bytes.toString('latin1'))}`
    const parsed = parse(bytes)
    assert.equal(scan.problem === null, parsed !== null, shown)
    if (parsed === null) {
      invalid += 1
      continue
    }
    valid += 1
    for (const pointer of POINTERS) {
      const expected = valueAt(parsed.value, pointer)
      assert.equal(scan.typeOf(pointer), typeOf(expected), `${shown} ${pointer}`)
      const text = scan.textOf(pointer, ALL)
      if (typeof expected === 'string') assert.equal(text, expected, `${shown} ${pointer}`)
      else if (typeof expected === 'number') assert.equal(Number(text), expected, `${shown} ${pointer}`)
      else if (typeof expected === 'boolean') assert.equal(text, String(expected), `${shown} ${pointer}`)
      else assert.equal(text, null, `${shown} ${pointer}`)
      if (expected !== undefined && pointer !== '') values += 1
    }
  }
  assert.ok(valid > CASES / 5 && invalid > CASES / 5 && values > CASES / 5, `${valid} ${invalid} ${values}`)
})

function parse(bytes: Buffer): { readonly value: unknown } | null {
  try {
    return { value: JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) }
  } catch {
    return null
  }
}

function valueAt(root: unknown, pointer: string): unknown {
  let value = root
  for (const step of pointer.split('/').slice(1)) {
    if (Array.isArray(value)) value = /^(?:0|[1-9]\d*)$/.test(step) ? value[Number(step)] : undefined
    else if (typeof value === 'object' && value !== null && Object.hasOwn(value, step))
      value = (value as Record<string, unknown>)[step]
    else return undefined
  }
  return value
}

function typeOf(value: unknown): string | null {
  if (value === undefined) return null
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

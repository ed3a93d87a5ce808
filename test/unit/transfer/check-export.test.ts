// An export that is checked: what was written is read as it was, and no changed, missing or added byte passes.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkExport, type ExportProblem } from '../../../src/transfer/check-export.ts'
import { exportLines, FORMAT_VERSION, Tally } from '../../../src/transfer/export-file.ts'
import { sealedLine } from '../../../src/transfer/export-line.ts'
import type { ExportedRow, ReadRow } from '../../../src/transfer/export-row.ts'
import { each, exportedRow } from './exported-row.ts'

const PAYLOADS = [
  '{"a":1}',
  '{"text":"Zoë 💌 \\u0000 \\ud800"}\r\n',
  '\ufeff{ "bom": true }',
  Buffer.from([0xff, 0x00, 0x0a, 0x80]),
  '\u0001 not JSON \u0000',
  '',
].map((payload) => Buffer.from(payload as string))

const ROWS: readonly ExportedRow[] = [
  ...PAYLOADS.map((payload, n) => exportedRow(3 * n + 2, payload)),
  exportedRow(40, Buffer.from('{}'), {
    kind: 'revision',
    revises: 2,
    channelRef: '=1+"x"\n',
    receivedAt: 1_793_000_000_123,
  }),
  exportedRow(41, null, { erasedAt: 1_793_000_000_999, sourceRef: null, channelRef: 'erased:0123456789abcdef' }),
  exportedRow(42, null),
]

const HEADER = {
  intray_export: FORMAT_VERSION,
  database: '019a8661-2c7e-7b3a-9d51-6f0c2b8e4a17',
  exported_at: '2026-11-15T12:00:00.000Z',
  through_id: 50,
  filters: {},
}

async function written(rows: readonly ExportedRow[] = ROWS): Promise<Buffer> {
  return Buffer.from((await Array.fromAsync(exportLines(HEADER, each(rows), new Tally()))).join(''))
}

interface Result {
  readonly rows: readonly ReadRow[]
  readonly problems: readonly ExportProblem[]
}

/** Read in chunks of this size. */
async function check(bytes: Buffer, chunk = 1000, maxLineBytes?: number): Promise<Result> {
  const chunks: Buffer[] = []
  for (let at = 0; at < bytes.length; at += chunk) chunks.push(bytes.subarray(at, at + chunk))
  const problems: ExportProblem[] = []
  const limit = maxLineBytes === undefined ? {} : { maxLineBytes }
  const rows: ReadRow[] = await Array.fromAsync(
    checkExport(each(chunks), { ...limit, onProblem: (problem) => problems.push(problem) }),
  )
  return { rows, problems }
}

/** The same numbers in each run. */
function numbers(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

const lineAt = (bytes: Buffer, at: number): number => bytes.subarray(0, at).filter((byte) => byte === 10).length + 1

test('every row comes back with its bytes, references and times, whatever the bytes are and however they are cut', async () => {
  const bytes = await written()
  for (const chunk of [1, 7, 100_000]) {
    const { rows, problems } = await check(bytes, chunk)
    assert.deepEqual(problems, [])
    assert.equal(rows.length, ROWS.length)
    for (const [n, { event, payload }] of ROWS.entries()) {
      const { meta, sha256, ...read } = rows[n]!
      const isErased = event.erasedAt !== null
      assert.deepEqual(read.payload, payload)
      assert.deepEqual(sha256 && Buffer.from(sha256), isErased ? null : event.sha256)
      assert.deepEqual([read.id, read.kind, read.revises], [event.id, event.kind, event.revises])
      assert.equal(read.erasedAt, event.erasedAt)
      assert.equal(meta.receivedAt, event.receivedAt)
      assert.equal(meta.sourceRef, event.sourceRef)
      assert.equal(meta.channelRef, isErased ? null : event.channelRef, 'no HMAC leaves its database')
    }
  }
})

test('a changed byte is found in its line, and the line of a row is named with its id', async () => {
  const bytes = await written()
  const random = numbers(31)
  let named = 0
  for (let n = 0; n < 400; n++) {
    const at = random(bytes.length)
    const changed = Buffer.from(bytes)
    changed[at]! ^= 1 << random(8)
    const { problems } = await check(changed)
    const line = lineAt(bytes, at)
    assert.equal(problems[0]?.line, line, `byte ${at}: ${JSON.stringify(problems)}`)
    if (problems[0].id !== null && line > 1 && line < ROWS.length + 2) named += 1
  }
  assert.ok(named > 250, `${named} named their row`)
  assert.deepEqual((await check(bytes)).problems, [], 'control: nothing is changed')
})

test('a file that ends early, at any byte, is not whole', async () => {
  const bytes = await written(ROWS.slice(0, 3))
  for (let length = 0; length < bytes.length; length++) {
    const { problems } = await check(bytes.subarray(0, length))
    assert.equal(problems.length, 1, `${length} bytes: ${JSON.stringify(problems)}`)
  }
})

test('a line that is missing, repeated, exchanged, added or of another file is found', async () => {
  const lines = (await written()).toString().split(/(?<=\n)/)
  const extra = `${sealedLine({ id: 9, kind: 'event' })}\n`
  const others: Record<string, string[]> = {
    'a row is missing': lines.toSpliced(3, 1),
    'a row stands twice': lines.toSpliced(3, 0, lines[3]!),
    'two rows are exchanged': lines.toSpliced(3, 2, lines[4]!, lines[3]!),
    'the header is missing': lines.slice(1),
    'a line is added': lines.toSpliced(5, 0, extra),
    'a line follows': [...lines, extra],
    'an empty line follows': [...lines, '\n'],
    'lines end in CRLF': lines.map((line) => line.replace('\n', '\r\n')),
    'the manifest says the same in other words': [
      ...lines.slice(0, -1),
      `${sealedLine({ manifest: { ...JSON.parse(lines.at(-1)!).manifest, more: 1 } })}\n`,
    ],
    'another version wrote it': [`${sealedLine({ ...HEADER, intray_export: 2 })}\n`, ...lines.slice(1)],
  }
  for (const [what, changed] of Object.entries(others)) {
    const { problems } = await check(Buffer.from(changed.join('')))
    assert.ok(problems.length > 0, what)
  }
})

test('a row whose digests are right and whose content makes no sense is refused', async () => {
  const [, line] = (await written()).toString().split('\n')
  const { line_sha256: _, ...fields } = JSON.parse(line!) as Record<string, unknown>
  const wrong: Record<string, Record<string, unknown>> = {
    'another payload': { payload: '{"a":2}' },
    'no digest': { sha256: null },
    'no payload': { payload: null },
    'an erased row with content': { erased_at: '2026-11-15T12:00:00.000Z' },
    'a time that is none': { received_at: '2026-02-30T12:00:00.000Z' },
    'a tenant that is none': { company_id: 0 },
    'a reference that is no text': { source_ref: 7 },
    'another kind': { kind: 'message' },
    'another origin': { origin: 'elsewhere' },
  }
  for (const [what, change] of Object.entries(wrong)) {
    const bytes = Buffer.from(`${sealedLine(HEADER)}\n${sealedLine({ ...fields, ...change })}\n`)
    const { rows, problems } = await check(bytes)
    assert.deepEqual([rows, problems[0]?.line, problems[0]?.id], [[], 2, 2], what)
  }
})

test('a line longer than any row is passed over, not collected', async () => {
  const bytes = await written()
  const long = Buffer.concat([bytes.subarray(0, bytes.indexOf(10) + 1), Buffer.alloc(50_000, 97), Buffer.from('\n')])
  const { problems } = await check(long, 1000, 10_000)
  assert.deepEqual(
    problems.map(({ line, what }) => [line, what]),
    [[2, 'is not as it was written']],
  )
})

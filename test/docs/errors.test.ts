import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import { statusOf } from '../../src/http/problem.ts'
import { ERRORS, type ErrorCode } from '../../src/model/errors.ts'

test('docs/sending/errors.md lists every code of the catalogue, once, with its status and whether to retry', () => {
  const text = readFileSync(new URL('../../docs/sending/errors.md', import.meta.url), 'utf8')
  const rows = [...text.matchAll(/^\| `(\w+)` \| (\d{3}) \| (yes|no) \| .{20,} \|$/gm)].map(
    ([, code, status, retry]) => ({
      code,
      status: Number(status),
      retryable: retry === 'yes',
    }),
  )
  const expected = (Object.keys(ERRORS) as ErrorCode[]).map((code) => ({
    code,
    status: statusOf({ code }),
    retryable: ERRORS[code].retryable,
  }))
  assert.deepEqual(rows, expected)
})

test('every sentence of the catalogue ends, and tells the reader something', () => {
  for (const [code, row] of Object.entries(ERRORS)) assert.match(row.message, /^[A-Z].{20,}\.$/, code)
})

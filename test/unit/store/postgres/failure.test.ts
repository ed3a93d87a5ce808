// What an error of PostgreSQL, or of the way to it, means to callers. By code, never by text.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import { StoreFailure } from '../../../../src/store/contract/failure.ts'
import { endsConnection, isRetryable, storeFailure } from '../../../../src/store/postgres/connection/failure.ts'

const ofServer = (code: string) => Object.assign(new pg.DatabaseError('as the server put it', 0, 'error'), { code })
const ofSystem = (code: string) => Object.assign(new Error(`write ${code}`), { code, errno: -1, syscall: 'write' })

const MEANINGS: Record<string, [kind: string, ends: boolean, retry: boolean]> = {
  '08006': ['unavailable', true, false],
  '57P01': ['unavailable', true, false],
  '57P03': ['unavailable', true, false],
  '57014': ['unavailable', false, false],
  '53300': ['unavailable', false, false],
  '53100': ['unavailable', false, false],
  '25006': ['unavailable', true, false],
  '28P01': ['unavailable', false, false],
  '40001': ['unavailable', false, true],
  '40P01': ['unavailable', false, true],
  '55P03': ['unavailable', false, false],
  '42501': ['unavailable', false, false],
  // A pooler forgot the prepared statement, or a migration changed what it reads: a new session helps.
  '26000': ['unavailable', true, false],
  '42P05': ['unavailable', true, false],
  '0A000': ['unavailable', true, false],
  XX000: ['unavailable', true, false],
  '42P01': ['fatal', false, false],
  '42883': ['fatal', false, false],
  '22021': ['rejected', false, false],
  '23502': ['rejected', false, false],
  '23505': ['rejected', false, false],
  '54000': ['rejected', false, false],
}
for (const [code, [kind, ends, retry]] of Object.entries(MEANINGS)) {
  test(`${code} is ${kind}${ends ? ', and the connection is done with' : ''}`, () => {
    const failure = storeFailure(ofServer(code))
    assert.deepEqual([failure.kind, endsConnection(failure), isRetryable(failure)], [kind, ends, retry])
  })
}

for (const code of ['ECONNRESET', 'ECONNREFUSED', 'EPIPE', 'EBUSY', 'EROFS']) {
  test(`${code}: nobody knows what became of it, whether it looks like a state or not`, () => {
    const failure = storeFailure(ofSystem(code))
    assert.deepEqual([failure.kind, endsConnection(failure), isRetryable(failure)], ['unavailable', true, false])
  })
}

test('an error without a code came from the way to the server', () => {
  const failure = storeFailure(new Error('Query read timeout'))
  assert.deepEqual([failure.kind, endsConnection(failure)], ['unavailable', true])
})

test('a value that cannot be sent is the caller’s, and costs no connection', () => {
  const failure = storeFailure(new TypeError('1.5 is not a whole number'))
  assert.deepEqual([failure.kind, endsConnection(failure)], ['rejected', false])
})

test('a failure that has a kind already keeps it', () => {
  const failure = new StoreFailure('rejected', 'it exists already')
  assert.equal(storeFailure(failure), failure)
})

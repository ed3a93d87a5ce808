// What a SQLite error means to a caller, told by its code.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StoreFailure, type StoreFailureKind } from '../../../../src/store/contract/failure.ts'
import { readFailure, sqliteCode, storeFailure } from '../../../../src/store/sqlite/connection.ts'

const KINDS: Record<StoreFailureKind, Record<string, number>> = {
  unavailable: {
    SQLITE_FULL: 13,
    SQLITE_BUSY: 5,
    SQLITE_BUSY_SNAPSHOT: 517,
    SQLITE_BUSY_TIMEOUT: 773,
    SQLITE_LOCKED: 6,
  },
  fatal: {
    SQLITE_IOERR: 10,
    SQLITE_IOERR_FSYNC: 1034,
    SQLITE_IOERR_WRITE: 778,
    SQLITE_IOERR_SHORT_READ: 522,
    SQLITE_READONLY: 8,
    SQLITE_READONLY_DBMOVED: 1032,
    SQLITE_CANTOPEN: 14,
  },
  damaged: { SQLITE_CORRUPT: 11, SQLITE_CORRUPT_INDEX: 779, SQLITE_NOTADB: 26 },
  rejected: { SQLITE_CONSTRAINT_UNIQUE: 2067, SQLITE_CONSTRAINT_DATATYPE: 3091, SQLITE_TOOBIG: 18, SQLITE_ERROR: 1 },
}
for (const [kind, codes] of Object.entries(KINDS)) {
  for (const [name, errcode] of Object.entries(codes)) {
    test(`${name} is ${kind}`, () => {
      const cause = Object.assign(new Error('as SQLite says it'), { code: 'ERR_SQLITE_ERROR', errcode })
      const failure = storeFailure(cause)
      assert.ok(failure instanceof StoreFailure)
      assert.equal(failure.kind, kind)
      assert.equal(failure.cause, cause)
    })
  }
}

test('an error that is not of SQLite concerns the operation alone', () => {
  for (const error of [new TypeError('no such field'), 'text', null, undefined, { errcode: '10' }]) {
    assert.equal(storeFailure(error).kind, 'rejected')
    assert.equal(sqliteCode(error), null)
  }
})

test('a failure that has a kind already keeps it', () => {
  const failure = new StoreFailure('unavailable', 'closed')
  assert.equal(storeFailure(failure), failure)
})

test('a page that the disk does not give back is damage to a read; any other failure is what it would be of a write', () => {
  for (const codes of Object.values(KINDS)) {
    for (const [name, errcode] of Object.entries(codes)) {
      const cause = Object.assign(new Error('as SQLite says it'), { code: 'ERR_SQLITE_ERROR', errcode })
      const isPage = name === 'SQLITE_IOERR_SHORT_READ'
      assert.equal(readFailure(cause).kind, isPage ? 'damaged' : storeFailure(cause).kind, name)
    }
  }
})

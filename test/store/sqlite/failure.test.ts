// Errors and transactions of the real SQLite. Which code means what is in test/unit/store/sqlite/failure.test.ts.

import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { inTransaction, sqliteCode } from '../../../src/store/sqlite/connection.ts'

test('errors of the real SQLite carry the code that is looked at', () => {
  const db = new DatabaseSync(':memory:')
  db.exec('CREATE TABLE t (a INTEGER PRIMARY KEY) STRICT; INSERT INTO t VALUES (1)')
  for (const [sql, code] of [
    ['INSERT INTO t VALUES (1)', 19],
    ["INSERT INTO t VALUES ('x')", 20],
    ['SELECT nonsense', 1],
  ] as const) {
    assert.throws(
      () => db.exec(sql),
      (error) => sqliteCode(error) === code,
    )
  }
  db.close()
})

test('a transaction that fails leaves nothing, and the next one runs', () => {
  const db = new DatabaseSync(':memory:')
  db.exec('CREATE TABLE t (a)')
  assert.throws(
    () =>
      inTransaction(db, () => {
        db.exec('INSERT INTO t VALUES (1)')
        throw new Error('half-way')
      }),
    /half-way/,
  )
  assert.equal(db.isTransaction, false)
  assert.equal(
    inTransaction(db, () => db.prepare('SELECT count(*) AS n FROM t').get()?.n),
    0,
  )
  db.close()
})

// A control, never part of the service: loaded before it (`node --import`), in every thread, it sets PRAGMA synchronous
// to PROVE_SYNCHRONOUS after the service has set FULL and read it back. Everything else is the service itself, so this
// setting alone explains what the control loses.

import { DatabaseSync } from 'node:sqlite'

const weaker = process.env.PROVE_SYNCHRONOUS
if (weaker !== 'NORMAL' && weaker !== 'OFF') throw new Error('PROVE_SYNCHRONOUS must be NORMAL or OFF')

const exec = DatabaseSync.prototype.exec
DatabaseSync.prototype.exec = function (this: DatabaseSync, sql: string): void {
  exec.call(this, sql)
  // Among the last pragmas of every connection; syncs of a reader do not matter.
  if (sql.includes('wal_autocheckpoint')) exec.call(this, `PRAGMA synchronous = ${weaker}`)
}

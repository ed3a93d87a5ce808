// A control, never part of the service: loaded before it (`node --import`), in every thread, it sets PRAGMA synchronous to
// what PROVE_SYNCHRONOUS says, after the service has set FULL and read it back. Everything else is the service itself,
// so what a control loses, it loses by this alone.

import { DatabaseSync } from 'node:sqlite'

const weaker = process.env.PROVE_SYNCHRONOUS
if (weaker !== 'NORMAL' && weaker !== 'OFF') throw new Error('PROVE_SYNCHRONOUS must be NORMAL or OFF')

const exec = DatabaseSync.prototype.exec
DatabaseSync.prototype.exec = function (this: DatabaseSync, sql: string): void {
  exec.call(this, sql)
  // Among the last of the settings of every connection; what a reader syncs does not matter.
  if (sql.includes('wal_autocheckpoint')) exec.call(this, `PRAGMA synchronous = ${weaker}`)
}

// Backups: a database as one file, and a file as a new database.
//
// Promises
// - A backup holds everything that was committed before it began, in one consistent state, and is complete however many
//   messages come in meanwhile.
// - A restore writes nothing over what exists. Until it has finished, there is no database at its target.
// - A backup that is being checked is not changed.

import type { IdGap } from '../../model/id-gaps.ts'
import type { CopySide } from './copy.ts'

/** The database that a backup is made of. */
export interface BackupSource {
  /** How the names of its backups end. */
  readonly extension: '.db' | '.dump'
  /** Writes the backup into a file that exists and is empty. */
  write(file: string, say: (text: string) => void): Promise<BackupFloor>
  /** Notes in the database when its last backup began. */
  note(begunAt: number): Promise<void>
  close(): Promise<void>
}

/** The least rows that the backup must have in some of its tables, where the database can tell. */
export type BackupFloor = Readonly<Record<string, number>>

/** A backup that was opened to be checked. */
export interface BackupFile {
  /** What is wrong with the structure of the file, in the words of its database. Empty: nothing. */
  structure(): Promise<readonly string[]>
  /** Its rows; null if only a restore makes them readable. */
  readonly rows: CopySide | null
  close(): Promise<void>
}

/** A backup on its way to become a database. */
export interface Restore {
  /** Reads the backup. What it holds can be checked before the database is there. */
  load(): Promise<BackupFile>
  /** Where a store can be opened on what was loaded, to change it before it is in place. Close it before `finish`. */
  readonly loadedUrl: string
  /** Begins an epoch, forgets what belongs to the old servers, and puts the database in place. */
  finish(now: number): Promise<IdGap>
  /** Removes what `load` made; does nothing after `finish`. */
  discard(): Promise<void>
}

// Says that sealed secrets need their key, which no backup and no copy holds.

import { note } from '../output.ts'

/** `rows`: how many rows hold sealed secrets. */
export function noteSealed(rows: number, what: 'backup' | 'copy'): void {
  if (rows === 0) return
  const where = what === 'backup' ? 'Keep a copy of it apart' : 'Give the servers of the target the same one'
  note(
    `The secrets of hooks are sealed in the ${what}, and their key is not in it. ${where}: the file *.secrets.key beside the ` +
      'database, or INTRAY_SECRETS_KEY (docs/operating/backup.md).',
  )
}

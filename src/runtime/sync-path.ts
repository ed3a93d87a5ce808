// Makes a file, or the names in a folder, durable.

import { closeSync, fsyncSync, openSync } from 'node:fs'

/** A file must be opened for writing on some systems, a folder for reading: `r+` and `r`. */
export function syncPath(path: string, flags: 'r' | 'r+' = 'r'): void {
  const file = openSync(path, flags)
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

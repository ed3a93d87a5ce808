// Reads the URL of a database from a flag, or from the file that another flag names: every user of the machine can see flags.

import { readFileSync } from 'node:fs'
import { CommandError, UsageError } from './command.ts'

export function urlOf(url: string | undefined, file: string | undefined, flag: string): string | undefined {
  if (file === undefined) return url
  if (url !== undefined) throw new UsageError(`Give ${flag} or ${flag}-file, not both.`)
  try {
    return readFileSync(file, 'utf8').trim()
  } catch {
    throw new CommandError(`The file of ${flag}-file cannot be read. Check its path and permissions.`)
  }
}

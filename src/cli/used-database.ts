// Says which database a command uses, once for each, so that nobody takes another one for theirs. Not said if the output
// is for a program.

import { publicUrl } from '../store/open.ts'
import { note } from './output.ts'

const named = new Set<string>()
let isForProgram = false

/** Of a command with --json or --raw. */
export function outputIsForProgram(): void {
  isForProgram = true
}

/** Called when the database is open. */
export function nameDatabase(url: string): void {
  const isNew = !named.has(publicUrl(url))
  const line = databaseLine(url)
  if (isNew && !isForProgram) note(line)
}

/** A server says it on stdout, beside its address. */
export function databaseLine(url: string): string {
  const name = publicUrl(url)
  named.add(name)
  return `Database: ${name}`
}

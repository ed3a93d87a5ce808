// A folder for one test, inside the run's own. A file that runs alone makes that one itself, and removes it when it exits.

import { chmodSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

let own: string | null = null

export function tempFolder(name = 'case'): string {
  return mkdtempSync(join(process.env.TEST_ROOT ?? (own ??= ownRoot()), `${name}-`))
}

function ownRoot(): string {
  const folder = newRoot()
  process.once('exit', () => removeFolder(folder))
  return folder
}

/** A server under test may run as another user. */
export function newRoot(): string {
  const folder = mkdtempSync(join(tmpdir(), 'intray-test-'))
  chmodSync(folder, 0o755)
  return folder
}

/** Also while a server that is ending removes files of it: rmSync stops at a file that is gone, without an error. */
export function removeFolder(folder: string): void {
  while (existsSync(folder)) rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 20 })
}

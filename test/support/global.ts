// Once for the whole run: one folder for everything tests write, removed at the end however the run ends, one PostgreSQL
// server, which ends with this process, the console, built, and a browser to look at it with.

import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildConsole } from '../../src/cli/console-build.ts'
import { requirePackages } from '../../prove/debian.ts'
import { hasStrace } from '../../prove/strace.ts'
import { findChromium } from './chromium.ts'
import { startSharedPostgres } from './postgres/databases.ts'
import type { PostgresServer } from './postgres/server.ts'

let postgres: PostgresServer | null = null

/** From Debian's packages, as root. Elsewhere the tests that need it report themselves as not run, by name. */
function install(name: string, isThere: () => boolean): void {
  try {
    requirePackages({ proof: 'npm test', packages: [name], isThere }, (line) => process.stderr.write(`${line} …\n`))
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`)
  }
}

export async function globalSetup(): Promise<void> {
  install('strace', hasStrace)
  const root = mkdtempSync(join(tmpdir(), 'intray-test-'))
  // A server under test may run as another user.
  chmodSync(root, 0o755)
  process.env.TEST_ROOT = root
  // The commands that tests start many times are then compiled once: 0.12 s of CPU instead of 0.39 s each.
  process.env.NODE_COMPILE_CACHE = join(root, 'compile-cache')
  // Servers under test would each build it otherwise, and say so.
  const outcome = await buildConsole({ say: (line) => process.stderr.write(`${line}\n`) })
  if (outcome === 'failed') throw new Error('The console could not be built: no test of it means anything.')
  install('chromium-headless-shell', () => findChromium() !== null)
  postgres = await startSharedPostgres()
}

export async function globalTeardown(): Promise<void> {
  await postgres?.kill()
  const root = process.env.TEST_ROOT
  if (root) rmSync(root, { recursive: true, force: true })
}

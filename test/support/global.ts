// Once for the whole run: one folder for everything tests write, removed at the end however the run ends, one PostgreSQL
// server, which ends with this process, the console, built, and a browser to look at it with.

import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildConsole } from '../../src/cli/console-build.ts'
import { installChromium } from './chromium.ts'
import { requireStrace } from '../../prove/strace.ts'
import { startSharedPostgres } from './postgres/databases.ts'
import type { PostgresServer } from './postgres/server.ts'

let postgres: PostgresServer | null = null

/** From Debian's packages, as root. Elsewhere the tests that need it report themselves as not run. */
function installStrace(): void {
  try {
    requireStrace('npm test', () => {})
  } catch {
    // They say so themselves, by name.
  }
}

export async function globalSetup(): Promise<void> {
  installStrace()
  const root = mkdtempSync(join(tmpdir(), 'intray-test-'))
  // A server under test may run as another user.
  chmodSync(root, 0o755)
  process.env.TEST_ROOT = root
  // The commands that tests start many times are then compiled once: 0.12 s of CPU instead of 0.39 s each.
  process.env.NODE_COMPILE_CACHE = join(root, 'compile-cache')
  // Servers under test would each build it otherwise, and say so.
  const outcome = await buildConsole({ say: (line) => process.stderr.write(`${line}\n`) })
  if (outcome === 'failed') throw new Error('The console could not be built: no test of it means anything.')
  installChromium()
  postgres = await startSharedPostgres()
}

export async function globalTeardown(): Promise<void> {
  await postgres?.kill()
  const root = process.env.TEST_ROOT
  if (root) rmSync(root, { recursive: true, force: true })
}

// Once for the whole run: one folder for everything tests write, removed at the end however the run ends.

import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export function globalSetup(): void {
  const root = mkdtempSync(join(tmpdir(), 'intray-test-'))
  // A server under test may run as another user.
  chmodSync(root, 0o755)
  process.env.TEST_ROOT = root
  // The commands that tests start many times are then compiled once: 0.12 s of CPU instead of 0.39 s each.
  process.env.NODE_COMPILE_CACHE = join(root, 'compile-cache')
}

export function globalTeardown(): void {
  const root = process.env.TEST_ROOT
  if (root) rmSync(root, { recursive: true, force: true })
}

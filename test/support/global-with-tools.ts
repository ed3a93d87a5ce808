// The global set-up of runs that use strace or Chromium, which npm does not bring: as root on Debian they are installed.
// Elsewhere the tests that need them report themselves as skipped, by name.

import { requirePackages } from '../../prove/debian.ts'
import { hasStrace } from '../../prove/strace.ts'
import { findChromium } from './chromium.ts'
import { globalSetup as setUp } from './global.ts'

export { globalTeardown } from './global.ts'

export async function globalSetup(): Promise<void> {
  install('strace', hasStrace)
  install('chromium-headless-shell', () => findChromium() !== null)
  await setUp()
}

function install(name: string, isThere: () => boolean): void {
  try {
    requirePackages({ proof: 'npm test', packages: [name], isThere }, (line) => process.stderr.write(`${line} …\n`))
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`)
  }
}

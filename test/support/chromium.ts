// A real browser for the tests of the console. Where there is none and we may install one, the run does so, from the
// system's own packages; where we may not, the tests say by name that they were not run.

import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'

const PLACES = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
]

const INSTALL_LIMIT_MS = 300_000

export function findChromium(): string | null {
  return PLACES.find((path) => existsSync(path)) ?? null
}

/** For `skip` of a test. */
export function missingChromium(): string | false {
  return findChromium() === null && 'not run: Chromium is not installed'
}

/** Debian only, as root only; a failure is told by the tests that are then not run. */
export function installChromium(): void {
  if (findChromium() !== null || process.getuid?.() !== 0 || !existsSync('/usr/bin/apt-get')) return
  process.stderr.write('Installing Chromium for the tests of the console …\n')
  const apt = (...args: string[]) =>
    spawnSync('apt-get', ['-qq', '-y', ...args], {
      stdio: 'ignore',
      timeout: INSTALL_LIMIT_MS,
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    }).status === 0
  const install = () => apt('install', '--no-install-recommends', 'chromium')
  if (!install()) {
    apt('update')
    install()
  }
}

// A real browser for the tests of the console. Where there is none and none may be installed, they say by name that they were
// not run.

import { existsSync } from 'node:fs'

/** The shell without a desktop first: the same engine at half of the processor time. */
const PLACES = [
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
]

export function findChromium(): string | null {
  return PLACES.find((path) => existsSync(path)) ?? null
}

/** For `skip` of a test. */
export function missingChromium(): string | false {
  return findChromium() === null && 'not run: Chromium is not installed'
}

// The global set-up of runs that use programs that npm does not bring, such as strace, Chromium, PHP, Python, HAProxy, openssl, Prometheus
// or systemd-analyze: as root on Debian they are installed. Elsewhere the tests that need them report themselves as skipped, by name.

import { hasProgram, postgresBin, requirePackages } from '../../prove/debian.ts'
import { hasStrace } from '../../prove/strace.ts'
import { findChromium } from './chromium.ts'
import { globalSetup as setUp } from './global.ts'
import { HAPROXY_PACKAGES, hasHaproxy } from './haproxy.ts'
import { hasProxies, PROXY_PACKAGES } from './proxies.ts'
import { hasPython } from './python.ts'
import { hasWordpress, WORDPRESS_PACKAGES } from './wordpress/site.ts'

export { globalTeardown } from './global.ts'

export async function globalSetup(): Promise<void> {
  install(['strace'], hasStrace)
  install(['chromium-headless-shell'], () => findChromium() !== null)
  install(WORDPRESS_PACKAGES, hasWordpress)
  install(['python3'], hasPython)
  install(['postgresql'], () => postgresBin() !== null)
  install(HAPROXY_PACKAGES, hasHaproxy)
  install(PROXY_PACKAGES, hasProxies)
  install(['jq'], () => hasProgram('jq'))
  install(['openssl'], () => hasProgram('openssl'))
  install(['prometheus'], () => hasProgram('promtool') && hasProgram('prometheus'))
  install(['systemd'], () => hasProgram('systemd-analyze'))
  await setUp()
}

function install(packages: readonly string[], isThere: () => boolean): void {
  try {
    requirePackages({ proof: 'npm test', packages, isThere }, (line) => process.stderr.write(`${line} …\n`))
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`)
  }
}

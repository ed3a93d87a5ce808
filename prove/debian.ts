// Programs that a proof needs from Debian's packages: installed where that is possible, explained where it is not.

import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { Unable } from './proof.ts'

export const isRoot = process.getuid?.() === 0

/** Programs of administrators are not on everybody's path. */
const FOLDERS = [...(process.env.PATH ?? '').split(':'), '/usr/sbin', '/sbin']

export function hasProgram(name: string): boolean {
  return FOLDERS.some((folder) => existsSync(join(folder, name)))
}

export interface Needs {
  /** Who needs it, for the sentence. */
  readonly proof: string
  readonly packages: readonly string[]
  readonly isThere: () => boolean
}

/** Installs what is missing as root; says which packages to install otherwise. */
export function requirePackages({ proof, packages, isThere }: Needs, progress: (line: string) => void): void {
  if (isThere()) return
  const sentence = `${proof} needs the Debian packages ${packages.join(', ')}`
  if (!isRoot || !hasProgram('apt-get')) throw new Unable(`${sentence}: apt-get install ${packages.join(' ')}`)
  progress(`installing ${packages.join(', ')}`)
  const install = () => aptGet('install', '-y', '--no-install-recommends', ...packages)
  try {
    try {
      install()
    } catch {
      // The lists of packages may be old, or not there at all.
      aptGet('update')
      install()
    }
  } catch (error) {
    throw new Unable(`${sentence}, and they could not be installed: ${String((error as { stderr?: unknown }).stderr)}`)
  }
  if (!isThere()) throw new Unable(`${sentence}; they are installed, and something is missing all the same`)
}

function aptGet(...args: readonly string[]): void {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  execFileSync('apt-get', args, { env, stdio: 'pipe', timeout: 300_000 })
}

export function requireRoot(proof: string, why: string): void {
  if (!isRoot) throw new Unable(`${proof} needs root, ${why}: run it with sudo, or in a virtual machine of your own.`)
}

/** The folder of the newest PostgreSQL from Debian's packages; null if there is none. */
export function postgresBin(): string | null {
  const root = '/usr/lib/postgresql'
  const versions = existsSync(root) ? readdirSync(root).sort((a, b) => Number(b) - Number(a)) : []
  const found = versions.find((version) => existsSync(join(root, version, 'bin', 'postgres')))
  return found === undefined ? null : join(root, found, 'bin')
}

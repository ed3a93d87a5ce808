// Writes another commit of this project into a folder from which it can be started.
// Promises: writes below the given folder only; the repository, its index and its list of worktrees stay unchanged.

import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Scope } from '../scope.ts'
import { UsageError } from '../usage-error.ts'

const LOCK = 'package-lock.json'

async function git(root: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<string> {
  const { stdout } = await promisify(execFile)('git', args, { cwd: root, env: { ...process.env, ...env } })
  return stdout.trim()
}

/** The full hash of a commit; a UsageError if the repository does not have it. */
export async function findCommit(root: string, name: string): Promise<string> {
  try {
    return await git(root, ['rev-parse', '--verify', '--quiet', '--end-of-options', `${name}^{commit}`])
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw new UsageError('bench ab needs git to check out B.')
    throw new UsageError(
      `--against: there is no commit "${name}" in ${root}. \`git log --oneline\` lists those there are.`,
    )
  }
}

/** A commit's short hash and subject. */
export function describeCommit(root: string, commit: string): Promise<string> {
  return git(root, ['log', '-1', '--format=%h %s', commit])
}

export async function hasChanges(root: string): Promise<boolean> {
  return (await git(root, ['status', '--porcelain'])) !== ''
}

/** Writes the files of a commit into a new folder, with an index of its own, so that git keeps no record of it. */
export async function writeCommit(root: string, commit: string, folder: string): Promise<void> {
  mkdirSync(folder)
  const env = { GIT_INDEX_FILE: `${folder}.index` }
  await git(root, ['read-tree', commit], env)
  await git(root, ['checkout-index', '--all', `--prefix=${folder}/`], env)
}

/** With an equal lock file the packages of this checkout are linked; otherwise npm installs them. */
export async function addPackages(
  scope: Pick<Scope, 'own'>,
  root: string,
  folder: string,
): Promise<'linked' | 'installed'> {
  const locks = [root, folder].map((one) => readFileSync(join(one, LOCK)))
  if (locks[0]!.equals(locks[1]!)) {
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
    return 'linked'
  }
  const child = scope.own(
    spawn('npm', ['ci', '--no-audit', '--no-fund'], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] }),
  )
  const [code] = (await once(child, 'exit')) as [number | null]
  if (code !== 0) throw new Error(`\`npm ci\` for the other commit failed (exit code ${code}).`)
  return 'installed'
}

// Disks with a fault: read-only, or nearly full. They need root to be mounted; without it a read-only folder stands in
// for the first, and the second is not run.

import { spawnSync } from 'node:child_process'
import { chmodSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { tempFolder } from './temp.ts'

const isRoot = process.getuid?.() === 0

/** A small file system in memory, gone after the test. Null where none can be mounted. */
export function mountSmallDisk(t: TestContext, bytes: number): string | null {
  const folder = tempFolder('disk')
  if (!isRoot || !run('mount', '-t', 'tmpfs', '-o', `size=${bytes},mode=0700`, 'tmpfs', folder)) return null
  t.after(() => run('umount', '-l', folder))
  return folder
}

/** A folder in which `prepare` has worked and nobody can write any more, not even root. */
export async function readOnlyFolder(t: TestContext, prepare: (folder: string) => Promise<void>): Promise<string> {
  const disk = mountSmallDisk(t, 16 * 1024 * 1024)
  const folder = disk ?? tempFolder('read-only')
  await prepare(folder)
  if (disk !== null) {
    if (!run('mount', '-o', 'remount,ro', folder)) throw new Error(`${folder} cannot be made read-only`)
    return folder
  }
  if (isRoot) throw new Error('root writes everywhere, and no file system can be mounted to stop it')
  const folders = [folder, ...foldersIn(folder)]
  for (const one of folders) chmodSync(one, 0o555)
  t.after(() => {
    for (const one of folders) chmodSync(one, 0o755)
  })
  return folder
}

function foldersIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name))
}

function run(command: string, ...args: string[]): boolean {
  return spawnSync(command, args, { stdio: 'ignore' }).status === 0
}

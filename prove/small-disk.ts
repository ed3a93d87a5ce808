// A disk that can be filled: a small file system in memory, mounted for the proof and gone after it.

import { spawnSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { type ProofContext, Unable } from './proof.ts'

const BLOCK = Buffer.alloc(4096, 0x5a)

export class SmallDisk {
  readonly folder: string
  readonly #ballast: string

  private constructor(folder: string) {
    this.folder = folder
    this.#ballast = join(folder, 'ballast')
  }

  static mount({ folder, onCleanup }: Pick<ProofContext, 'folder' | 'onCleanup'>, bytes: number): SmallDisk {
    const place = join(folder, 'small-disk')
    mkdirSync(place)
    if (process.getuid?.() !== 0) {
      throw new Unable('This proof mounts a small file system, which needs root: sudo npm run prove -- disk-full')
    }
    const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes},mode=0700`, 'tmpfs', place])
    if (mounted.status !== 0) throw new Unable(`No tmpfs can be mounted here: ${mounted.stderr?.toString().trim()}`)
    onCleanup(() => {
      spawnSync('umount', ['-l', place])
    })
    return new SmallDisk(place)
  }

  get freeBytes(): number {
    const { bavail, bsize } = statfsSync(this.folder)
    return bavail * bsize
  }

  /** Takes every block that is left. */
  fill(): void {
    const file = openSync(this.#ballast, 'a')
    try {
      for (;;) writeSync(file, BLOCK)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
    } finally {
      closeSync(file)
    }
  }

  free(): void {
    rmSync(this.#ballast, { force: true })
  }
}

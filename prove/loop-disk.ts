// A disk whose power can be cut: a real file system on a loop device, shut down by the kernel's own ioctl
// (`xfs_io -x -c shutdown`). From that moment nothing more reaches the device: every page that was not synced and all
// metadata that was not in the file system's journal are gone, as when the power fails. Mounting it again recovers the journal.
// Promises: unmounted and removed when the proof is over. What a drive's own write cache would lose is not simulated.

import { execFile } from 'node:child_process'
import { mkdirSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { hasProgram, requirePackages, requireRoot } from './debian.ts'
import { type ProofContext, Unable } from './proof.ts'

const run = promisify(execFile)

export const FILE_SYSTEMS = ['ext4', 'xfs'] as const
export type FileSystem = (typeof FILE_SYSTEMS)[number]

const BYTES = 1024 * 1024 * 1024
const UNMOUNT_LIMIT_MS = 30_000

export function requireLoopDisks(proof: string, progress: (line: string) => void): void {
  requireRoot(proof, 'to mount file systems')
  const isThere = () => ['xfs_io', 'mkfs.xfs', 'mkfs.ext4'].every(hasProgram)
  requirePackages({ proof, packages: ['xfsprogs', 'e2fsprogs'], isThere }, progress)
}

export class LoopDisk {
  /** Where it is mounted. */
  readonly folder: string
  /** How often its power was cut. */
  cuts = 0
  readonly #image: string
  #isMounted = false

  private constructor(folder: string) {
    this.folder = folder
    this.#image = `${folder}.img`
  }

  /** A new one, mounted. */
  static async create(context: ProofContext, fileSystem: FileSystem, name: string): Promise<LoopDisk> {
    const disk = new LoopDisk(join(context.folder, name))
    mkdirSync(disk.folder)
    writeFileSync(disk.#image, '')
    truncateSync(disk.#image, BYTES)
    await run(`mkfs.${fileSystem}`, ['-q', ...(fileSystem === 'ext4' ? ['-F'] : []), disk.#image])
    context.onCleanup(() => disk.unmount())
    try {
      await disk.mount()
    } catch (error) {
      throw new Unable(`A file system of kind ${fileSystem} cannot be mounted here: ${String(error)}`)
    }
    return disk
  }

  async mount(): Promise<void> {
    await run('mount', ['-o', 'loop', this.#image, this.folder])
    this.#isMounted = true
  }

  /** Everything that is on it now will be there after a cut. */
  async sync(): Promise<void> {
    await run('sync', ['-f', this.folder])
  }

  async cut(): Promise<void> {
    await run('xfs_io', ['-x', '-c', 'shutdown', this.folder])
    this.cuts += 1
  }

  /** Waits for whoever still has a file open. */
  async unmount(): Promise<void> {
    const deadline = Date.now() + UNMOUNT_LIMIT_MS
    while (this.#isMounted) {
      try {
        await run('umount', [this.folder])
        this.#isMounted = false
      } catch (error) {
        if (Date.now() > deadline) throw error
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
    }
  }

  /** Unmount and mount: the journal of the file system is recovered. */
  async restart(): Promise<void> {
    await this.unmount()
    await this.mount()
  }
}

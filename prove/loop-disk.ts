// A disk whose power can be cut: a real file system on a loop device, shut down by the kernel's own ioctl
// (`xfs_io -x -c shutdown`). From that moment nothing more reaches the device: every page that was not synced and all
// metadata that was not in the file system's journal are gone, as when the power fails. Mounting it again recovers the journal.
// Promises: unmounted and removed when the proof is over. What a drive's own write cache would lose is not simulated.
//
// A power cut stops the processor too; the ioctl does not. An fsync that is under way at that moment may return 0 although
// its data is gone: of a bare loop of write and fsync, without Node or SQLite, the last record that was reported
// as synced was missing after at least 32 of 150 cuts on ext4 and 26 of 143 on XFS (0 of 60 and 60 when it was stopped first). So the process that acknowledges has to be stopped
// (SIGSTOP) first: it cannot report an fsync that ends during the cut, as when the power fails.

import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readlinkSync, truncateSync, writeFileSync } from 'node:fs'
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

/** Cuts the power; resolves when that has happened. */
export type Cut = () => Promise<void>

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

  /** Gets the cut ready, so that it comes at once when told to. */
  async armCut(): Promise<Cut> {
    const child = spawn('xfs_io', ['-x', this.folder], { stdio: ['pipe', 'pipe', 'pipe'] })
    const ended = once(child, 'close')
    let said = ''
    child.stderr.on('data', (chunk: Buffer) => (said += chunk))
    await this.#untilOpenedBy(child)
    return async () => {
      child.stdin.end('shutdown\nquit\n')
      const [code] = await ended
      if (code !== 0 || said !== '') throw new Error(`the file system was not shut down: ${said}`)
      this.cuts += 1
    }
  }

  /** It says nothing when it is ready. */
  async #untilOpenedBy({ pid, exitCode }: ChildProcess): Promise<void> {
    const files = `/proc/${pid}/fd`
    const isOpen = () => readdirSync(files).some((name) => linkOf(join(files, name)) === this.folder)
    while (exitCode === null && !isOpen()) await new Promise((resolve) => setTimeout(resolve, 5))
  }

  /** Waits for processes that still have a file open. */
  async unmount(): Promise<void> {
    const deadline = Date.now() + UNMOUNT_LIMIT_MS
    for (;;) {
      try {
        if (this.#isMounted) await run('umount', [this.folder])
        this.#isMounted = false
        // A process in a copy of our mount namespace still holds the file system: mounting it again would not recover the journal.
        const { stdout } = await run('losetup', ['-j', this.#image])
        if (stdout.trim() === '') return
        throw new Error(`${this.folder} is unmounted, but still in use: ${stdout.trim()}`)
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

function linkOf(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}

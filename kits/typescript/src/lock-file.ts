// A lock file: lets one process at a time own a file. The lock of a process that was killed is taken over at once on the same
// machine, and from another machine (a container that is gone) when its owner has not touched it for a while.

import { randomUUID } from 'node:crypto'
import { readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'

const TOUCH_MS = 10_000
const STALE_MS = 45_000

interface Owner {
  readonly pid: number
  /** When the process started, so that its number alone does not stand for it; null where the system does not say. */
  readonly started: string | null
  readonly host: string
  readonly nonce: string
}

export class LockFile {
  readonly #path: string
  readonly #text: string
  readonly #timer: NodeJS.Timeout

  /** Throws if another process has it. */
  constructor(path: string) {
    this.#path = path
    const owner: Owner = {
      pid: process.pid,
      started: startOf('self'),
      host: hostname(),
      nonce: randomUUID(),
    }
    this.#text = `${JSON.stringify(owner)}\n`
    this.#take()
    this.#timer = setInterval(() => this.#touch(), TOUCH_MS)
    this.#timer.unref()
  }

  release(): void {
    clearInterval(this.#timer)
    if (read(this.#path) === this.#text) rmSync(this.#path, { force: true })
  }

  #take(): void {
    if (this.#create()) return
    const found = read(this.#path)
    if (found !== null) {
      if (!isStale(this.#path, found)) throw new Error(inUse(this.#path, found))
      // Two processes may find the same stale lock: the one that moved a newer lock away puts it back.
      const aside = `${this.#path}.${randomUUID()}`
      try {
        renameSync(this.#path, aside)
      } catch {
        throw new Error(inUse(this.#path, found))
      }
      if (read(aside) !== found) {
        renameSync(aside, this.#path)
        throw new Error(inUse(this.#path, found))
      }
      rmSync(aside, { force: true })
    }
    if (!this.#create()) throw new Error(inUse(this.#path, read(this.#path) ?? ''))
  }

  #create(): boolean {
    try {
      writeFileSync(this.#path, this.#text, { flag: 'wx', mode: 0o600, flush: true })
      return true
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
      throw error
    }
  }

  #touch(): void {
    const now = new Date()
    try {
      utimesSync(this.#path, now, now)
    } catch {
      // The folder may be gone; the next write to the outbox reports it.
    }
  }
}

function isStale(path: string, text: string): boolean {
  let owner: Owner
  try {
    owner = JSON.parse(text) as Owner
  } catch {
    // Its owner died while it wrote the file, or is writing it now.
    return isUntouched(path, 2000)
  }
  if (owner.host !== hostname()) return isUntouched(path, STALE_MS)
  // This process writes a new start only if it has the lock.
  if (owner.started !== null) return startOf(owner.pid) !== owner.started
  try {
    process.kill(owner.pid, 0)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}

function isUntouched(path: string, ms: number): boolean {
  return Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0) > ms
}

/** On Linux: the boot and the tick at which a process started; null if there is none, or elsewhere. */
function startOf(pid: number | 'self'): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const tick = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}:${tick}`
  } catch {
    return null
  }
}

function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}

function inUse(path: string, text: string): string {
  const pid = /"pid":(\d+)/.exec(text)?.[1]
  return `The outbox belongs to another process${pid ? ` (${pid})` : ''}, as ${path} says. Give each process an outbox of its own, or use a Node that has node:sqlite (22.13 or newer).`
}

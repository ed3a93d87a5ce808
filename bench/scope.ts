// Resources of a running benchmark: child processes and one temporary folder.
// Promises: both are gone when the bench process ends, by return, error or signal; children are ended by their own pid.

import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'

const SIGNALS = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const

export class Scope {
  readonly folder: string
  readonly #children = new Set<ChildProcess>()
  readonly #onExit = (): void => this.#drop()

  constructor(parentFolder: string) {
    this.folder = mkdtempSync(join(parentFolder, 'intray-bench-'))
    process.once('exit', this.#onExit)
    for (const [signal, number] of Object.entries(SIGNALS)) process.once(signal, () => process.exit(128 + number))
  }

  /** Registers a child: it will not outlive the bench. */
  own<Child extends ChildProcess>(child: Child): Child {
    this.#children.add(child)
    child.once('exit', () => this.#children.delete(child))
    return child
  }

  /** Asks a child to end, and kills it after `graceMs`. */
  async stop(child: ChildProcess, graceMs = 15_000): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGTERM')
    const force = setTimeout(() => child.kill('SIGKILL'), graceMs)
    await ended
    clearTimeout(force)
  }

  async close(): Promise<void> {
    await Promise.all([...this.#children].map((child) => this.stop(child)))
    process.removeListener('exit', this.#onExit)
    this.#drop()
  }

  #drop(): void {
    for (const child of this.#children) child.kill('SIGKILL')
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 3 })
  }
}

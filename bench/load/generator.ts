// The parent's handle on the load generator: one job at a time, one report each.
// Promises: rejects if the process dies or a job cannot start; no job waits for ever.

import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Scope } from '../scope.ts'
import type { LoadJob, LoadMessage, LoadReport } from './job.ts'

const PROGRAM = fileURLToPath(new URL('../load.ts', import.meta.url))

export class LoadGenerator {
  readonly #child: ChildProcess

  constructor(scope: Scope) {
    this.#child = scope.own(fork(PROGRAM, [], { execArgv: [], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] }))
  }

  run(job: LoadJob, onProgress: (done: number) => void = () => {}): Promise<LoadReport> {
    return new Promise((resolve, reject) => {
      const settle = (act: () => void): void => {
        this.#child.removeListener('message', onMessage)
        this.#child.removeListener('exit', onExit)
        act()
      }
      const onExit = (code: number | null): void =>
        settle(() => reject(new Error(`the load generator ended (exit code ${code})`)))
      const onMessage = (message: LoadMessage): void => {
        if (message.type === 'progress') onProgress(message.done)
        else if (message.type === 'report') settle(() => resolve(message.report))
        else settle(() => reject(new Error(`the load generator could not run: ${message.message}`)))
      }
      this.#child.on('message', onMessage)
      this.#child.on('exit', onExit)
      this.#child.send(job)
    })
  }
}

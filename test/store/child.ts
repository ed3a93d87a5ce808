// A store in a process of its own, for tests that kill it. The other side is child-main.ts.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'

const MAIN = fileURLToPath(new URL('./child-main.ts', import.meta.url))

export interface Child {
  readonly process: ChildProcess
  /** What it has said so far, line by line. */
  readonly lines: readonly string[]
  /** The first line that starts like this; fails with what the child said if it ends without. */
  line(start: string): Promise<string>
  /** Tells a child that waits to go on. */
  go(): void
  /** Called for each line as it comes. */
  onLine(listener: (line: string) => void): void
  /** SIGKILL, and gone when this returns. */
  kill(): Promise<void>
  readonly exited: Promise<{ readonly code: number | null; readonly signal: string | null }>
}

export function startChild(t: TestContext, command: string, ...args: readonly string[]): Child {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const child = spawn(process.execPath, [MAIN, command, ...args], { env, stdio: ['pipe', 'pipe', 'pipe'] })
  const lines: string[] = []
  const listeners: ((line: string) => void)[] = []
  let errors = ''
  // A child that is killed before it reads is nothing to fail for.
  child.stdin.on('error', () => {})
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk))
  createInterface({ input: child.stdout }).on('line', (line) => {
    lines.push(line)
    for (const listener of listeners) listener(line)
  })
  const exited = once(child, 'close').then(([code, signal]) => ({
    code: code as number | null,
    signal: signal as string | null,
  }))
  const kill = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
    await exited
  }
  t.after(kill)
  return {
    process: child,
    lines,
    exited,
    kill,
    go: () => void child.stdin.end('go\n'),
    onLine: (listener) => listeners.push(listener),
    line: (start) =>
      new Promise((resolve, reject) => {
        const look = (line: string) => line.startsWith(start) && resolve(line)
        for (const line of lines) look(line)
        listeners.push(look)
        void exited.then(({ code, signal }) =>
          reject(new Error(`${command} ended (${signal ?? code}) without "${start}": ${lines.join('\n')}${errors}`)),
        )
      }),
  }
}

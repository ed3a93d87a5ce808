// A command that is fed on stdin, or watched while it runs.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { TestContext } from 'node:test'
import { cleanEnvironment, type Finished, finishedWith, LAUNCHER } from './process.ts'

export interface RunningCommand {
  readonly child: ChildProcess
  readonly finished: Promise<Finished>
  stdout(): string
}

export function startCommand(
  t: TestContext,
  args: readonly string[],
  env: Record<string, string>,
  input?: Uint8Array | string,
): RunningCommand {
  const child = spawn(LAUNCHER, args, { env: cleanEnvironment(env), stdio: ['pipe', 'pipe', 'pipe'] })
  const stdout: Buffer[] = []
  let stderr = ''
  child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk))
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk))
  child.stdin.on('error', () => {})
  child.stdin.end(input ?? '')
  const finished = once(child, 'close').then(([code]) =>
    finishedWith(code as number | null, Buffer.concat(stdout), stderr),
  )
  t.after(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
    await finished
  })
  return { child, finished, stdout: () => Buffer.concat(stdout).toString() }
}

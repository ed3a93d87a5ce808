// `./intray copy` in a process of its own, with something happening in the middle of it.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cleanEnvironment, LAUNCHER } from './process.ts'

export function copyArgs(from: string, to: string): string[] {
  return ['copy', '--from', from, '--to', to]
}

export interface CopyRun {
  readonly code: number | null
  readonly said: string
  readonly report: { readonly rounds: number; readonly paused_ms: number }
}

/** Runs the copy, and `onBegun` once it notes changes and copies the first table. */
export async function copyWhile(
  from: string,
  to: string,
  onBegun: (isOver: () => boolean) => Promise<void>,
): Promise<CopyRun> {
  const child = spawn(LAUNCHER, [...copyArgs(from, to), '--json'], {
    env: cleanEnvironment({}),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = once(child, 'close')
  let [said, printed] = ['', '']
  const loads: Promise<void>[] = []
  child.stdout.on('data', (chunk) => (printed += chunk))
  child.stderr.on('data', (chunk) => {
    said += chunk
    if (loads.length === 0 && said.includes('copy: ')) loads.push(onBegun(() => child.exitCode !== null))
  })
  const [code] = (await ended) as [number | null]
  await Promise.all(loads)
  return { code, said, report: code === 0 ? JSON.parse(printed) : { rounds: 0, paused_ms: 0 } }
}

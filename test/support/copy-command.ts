// `./intray copy` in a process of its own, with something happening in the middle of it.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { isStopped } from './children.ts'
import { cleanEnvironment, LAUNCHER } from './process.ts'
import { until } from './until.ts'

const PRELOAD = new URL('./hold-at-line.ts', import.meta.url).href

export function copyArgs(from: string, to: string): string[] {
  return ['copy', '--from', from, '--to', to]
}

export interface CopyRun {
  readonly code: number | null
  readonly said: string
  readonly report: { readonly rounds: number; readonly paused_ms: number }
}

export interface CopyInBetween {
  /** It notes changes by then: the line of the table before which the copy stands still until it may go on. */
  readonly at: string
  /** Begins while the copy stands still, lets it go on, and may last longer than the copy. */
  run(goOn: () => void, isOver: () => boolean): Promise<void>
}

export async function copyWhile(from: string, to: string, { at, run }: CopyInBetween): Promise<CopyRun> {
  const child = spawn(LAUNCHER, [...copyArgs(from, to), '--json'], {
    env: cleanEnvironment({ NODE_OPTIONS: `--import=${PRELOAD}`, HOLD_AT: at }),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = once(child, 'close')
  let [said, printed] = ['', '']
  child.stdout.on('data', (chunk) => (printed += chunk))
  child.stderr.on('data', (chunk) => (said += chunk))
  const isOver = () => child.exitCode !== null
  try {
    await until(`the copy stands still at ${at}`, () => {
      if (isOver()) throw new Error(`the copy has ended: ${said}`)
      return isStopped(child.pid!)
    })
    await run(() => child.kill('SIGCONT'), isOver)
  } finally {
    // After a failure too: one that stands still would never end.
    child.kill('SIGCONT')
  }
  const [code] = (await ended) as [number | null]
  return { code, said, report: code === 0 ? JSON.parse(printed) : { rounds: 0, paused_ms: 0 } }
}

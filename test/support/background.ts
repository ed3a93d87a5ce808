// A program of somebody else's that runs beside a test: ended with everything it started, also when the test process is killed.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { cleanEnvironment } from './process.ts'
import { until, within } from './until.ts'

// `cat` ends when our end of the pipe is gone. The group has the workers of PHP's built-in server, which survive their master.
const SHELL = `trap : TERM
exec 3<&0
"$@" </dev/null 3<&- & p=$!
{ cat <&3 >/dev/null; kill -$SIGNAL $p; } &
wait $p
kill -TERM 0`

export interface Background {
  /** What it printed so far. */
  output(): string
  stop(): Promise<void>
}

export interface BackgroundOptions {
  /** What it says when it is ready. */
  readonly ready: RegExp
  /** Where it says so, if not on its output. */
  readonly log?: string
  readonly env?: Record<string, string>
  /** How to end it: KILL where an orderly end takes long and nobody needs it. */
  readonly signal?: 'TERM' | 'KILL'
}

export async function startBackground(
  command: readonly string[],
  { ready, log, env = {}, signal = 'TERM' }: BackgroundOptions,
): Promise<Background> {
  const child = spawn('sh', ['-c', SHELL, 'sh', ...command], {
    env: cleanEnvironment({ ...env, SIGNAL: signal }),
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: true,
  })
  let printed = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk: string) => (printed += chunk))
  child.stdin.on('error', () => {})
  const closed = once(child, 'close')
  const output = () => printed + (log !== undefined && existsSync(log) ? readFileSync(log, 'utf8') : '')
  const stop = async () => {
    child.stdin.end()
    await within(`the end of ${command[0]}`, closed)
  }
  await until(`${command[0]} is ready`, () => {
    if (child.exitCode !== null || child.signalCode !== null) throw new Error(`${command[0]} has ended: ${output()}`)
    return ready.test(output())
  })
  return { output, stop }
}

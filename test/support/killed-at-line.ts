// A command that is killed when it has printed a certain text on stderr.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cleanEnvironment, LAUNCHER } from './process.ts'

const PRELOAD = new URL('./kill-at-line.ts', import.meta.url).href

/** True if the command got there, and false if it ended before. */
export async function killedAtLine(text: string, args: readonly string[]): Promise<boolean> {
  const env = cleanEnvironment({ NODE_OPTIONS: `--import=${PRELOAD}`, KILL_AT: text })
  const child = spawn(LAUNCHER, args, { env, stdio: 'ignore' })
  await once(child, 'close')
  return child.signalCode === 'SIGKILL'
}

// A command run to its end in a process of its own. One that does not end is killed and told with what it had printed:
// a start that should be refused and hangs instead is a failure, not a stuck test run.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { withStore } from './journal.ts'
import { cleanEnvironment, type Finished, finishedWith, intray } from './process.ts'
import { tempFolder } from './temp.ts'
import { within } from './until.ts'

export interface RunOptions {
  readonly cwd?: string
}

export async function runToEnd(
  command: readonly string[],
  env: Record<string, string>,
  { cwd }: RunOptions = {},
): Promise<Finished> {
  const child = spawn(command[0]!, command.slice(1), {
    env: cleanEnvironment(env),
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(cwd === undefined ? {} : { cwd }),
  })
  const stdout: Buffer[] = []
  let stderr = ''
  child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk))
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk))
  const closed = once(child, 'close').then(([code]) => code as number | null)
  try {
    const code = await within(`the end of ${command.join(' ')}`, closed)
    return finishedWith(code, Buffer.concat(stdout), stderr)
  } catch (error) {
    child.kill('SIGKILL')
    await closed
    throw new Error(`${(error as Error).message}; it had printed:\n${Buffer.concat(stdout)}${stderr.slice(0, 2000)}`)
  }
}

/** The settings of commands for an empty database of their own. */
export async function newDatabaseEnv(name: string): Promise<{ INTRAY_DATABASE_URL: string }> {
  const url = `sqlite:${join(tempFolder(name), 'intray.db')}`
  await withStore(url, async () => {})
  return { INTRAY_DATABASE_URL: url }
}

/** The one JSON object that a command with --json printed. */
export async function intrayJson(
  args: readonly string[],
  env: Record<string, string>,
): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await intray([...args, '--json'], env)
  if (code !== 0) throw new Error(`intray ${args.join(' ')} ended with ${code}: ${stderr}`)
  return JSON.parse(stdout.toString()) as Record<string, unknown>
}

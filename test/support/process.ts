// Intray as its users run it: the launcher, in a process of its own.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { tempFolder } from './temp.ts'

export const ROOT = fileURLToPath(new URL('../../', import.meta.url))
export const LAUNCHER = fileURLToPath(new URL('../../intray', import.meta.url))

export interface Finished {
  readonly code: number | null
  readonly stdout: Buffer
  /** Without the lines that name databases. */
  readonly stderr: string
  /** The databases that it named, as it named them. */
  readonly databases?: readonly string[]
}

export function finishedWith(code: number | null, stdout: Buffer, said: string): Finished {
  const NAMING = /^Database: (\S+)\n/gm
  const databases = Array.from(said.matchAll(NAMING), ([, name]) => name!)
  return { code, stdout, stderr: said.replaceAll(NAMING, ''), databases }
}

/** Runs a command to its end. */
export async function intray(args: readonly string[], env: Record<string, string>): Promise<Finished> {
  const child = spawn(LAUNCHER, args, { env: cleanEnvironment(env), stdio: ['ignore', 'pipe', 'pipe'] })
  const [stdout, stderr, [code]] = await Promise.all([
    collect(child.stdout),
    collect(child.stderr),
    once(child, 'close'),
  ])
  return finishedWith(code as number | null, stdout, stderr.toString())
}

export interface ServerProcess {
  readonly child: ChildProcess
  readonly url: string
  readonly port: number
  readonly exited: Promise<number | null>
  stdout(): string
  stderr(): string
}

/** Starts a server and waits until it says where it listens. Fails with what it printed if it ends before. */
export async function startServer(
  t: TestContext,
  env: Record<string, string>,
  command: readonly string[] = [LAUNCHER, 'serve'],
): Promise<ServerProcess> {
  const child = spawn(command[0]!, command.slice(1), {
    // A machine that is slow for reasons of its own is not what a test is about.
    env: cleanEnvironment({ INTRAY_PORT: '0', INTRAY_QUEUE_MAX_WAIT: '10m', ...env }),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk))
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk))
  const exited = once(child, 'close').then(([code]) => code as number | null)
  t.after(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
    await exited
  })
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout.on('data', () => {
      const found = /listening on (https?:\/\/\S+)(?: with \d+ workers)?\n/.exec(stdout)
      if (found) resolve(found[1]!)
    })
    void exited.then((code) => reject(new Error(`the server ended with ${code}: ${stdout}${stderr}`)))
  })
  return { child, url, port: Number(new URL(url).port), exited, stdout: () => stdout, stderr: () => stderr }
}

let stateFolder: string | null = null

/** Nothing of the tester's own settings reaches the service. */
export function cleanEnvironment(env: Record<string, string>): Record<string, string | undefined> {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !name.startsWith('INTRAY_') && name !== 'NODE_TEST_CONTEXT' && name !== 'JOURNAL_STREAM',
  )
  // Servers of other tests leave their notes elsewhere.
  return { ...Object.fromEntries(inherited), XDG_STATE_HOME: (stateFolder ??= tempFolder('state')), ...env }
}

async function collect(stream: NodeJS.ReadableStream): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

// A server under load, and how the bare and the Express servers are started.
// Promises: a contestant is returned once it listens; one that does not start in time is an error that says why.

import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Scope } from '../scope.ts'
import type { Databases } from './databases.ts'

/** `two`: Intray with two processes on the port, where the store allows it. */
export const CONTESTANTS = ['bare', 'intray', 'two', 'express'] as const
export type ContestantName = (typeof CONTESTANTS)[number]

export interface Contestant {
  readonly name: ContestantName
  /** Its own processes first, then the database server's: their CPU time is the cost of its answers. */
  readonly pids: readonly number[]
  readonly port: number
  readonly token: string
  readonly child: ChildProcess
  /** Resolves when no sent work is left: between two steps the server may look idle. */
  readonly finished?: () => Promise<void>
}

export const START_LIMIT_MS = 20_000

/** Same length as a real token, so that all contestants read the same number of bytes. */
const DUMMY_TOKEN = `itr_${'b'.repeat(10)}_${'x'.repeat(36)}`

/** Resolves with the first value of `arrival`; rejects if the child ends first or the time is up. */
export function startOf<T>(name: string, child: ChildProcess, arrival: Promise<T>, why: () => string): Promise<T> {
  return new Promise((resolve, reject) => {
    const refuse = (what: string): void => {
      clearTimeout(timer)
      reject(new Error(`${name} ${what}.${why()}`))
    }
    const timer = setTimeout(() => refuse(`did not listen within ${START_LIMIT_MS / 1000} s`), START_LIMIT_MS)
    child.once('error', (error) => refuse(`could not be started: ${error.message}`))
    child.once('exit', onEarlyExit)
    function onEarlyExit(code: number | null, signal: NodeJS.Signals | null): void {
      refuse(`ended at start (${signal ?? `exit code ${code}`})`)
    }
    arrival.then(resolve, reject).finally(() => {
      clearTimeout(timer)
      child.removeListener('exit', onEarlyExit)
    })
  })
}

/** Throws if the contestant has ended: the rate of a dead server means nothing. */
export function assertRunning({ name, child }: Contestant): void {
  if (child.exitCode === null && child.signalCode === null) return
  throw new Error(`${name} ended during the run (${child.signalCode ?? `exit code ${child.exitCode}`}).`)
}

function startForked(
  scope: Scope,
  name: 'bare' | 'express',
  file: string,
  args: readonly string[],
  databases: Databases | null,
): Promise<Contestant> {
  const program = fileURLToPath(new URL(file, import.meta.url))
  const child = scope.own(
    fork(program, args, {
      execArgv: [],
      env: { ...process.env, NODE_ENV: 'production' },
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    }),
  )
  const listening = new Promise<Contestant>((resolve) => {
    child.once('message', ({ port }: { port: number }) =>
      resolve({ name, pids: pidsOf(child, databases), port, token: DUMMY_TOKEN, child }),
    )
  })
  return startOf(name, child, listening, () => '')
}

export function startBare(scope: Scope): Promise<Contestant> {
  return startForked(scope, 'bare', './bare.ts', [], null)
}

export async function startExpress(scope: Scope, databases: Databases): Promise<Contestant> {
  const url = await databases.newUrl()
  return databases.store === 'sqlite'
    ? startForked(scope, 'express', './express-sqlite.ts', [url.slice('sqlite:'.length)], databases)
    : startForked(scope, 'express', './express-postgres.ts', [url], databases)
}

export function pidsOf(child: ChildProcess, databases: Databases | null): number[] {
  return [child.pid ?? 0, ...(databases?.pid ? [databases.pid] : [])]
}

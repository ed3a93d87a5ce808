// The Python client for tests: each instance is a Python process that takes calls.

import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { TestContext } from 'node:test'
import { cleanEnvironment, ROOT } from '../../support/process.ts'
import { PYTHON } from '../../support/python.ts'
import { within } from '../../support/until.ts'

export const PYTHON_KIT = join(ROOT, 'kits/python')

export function pythonEnvironment(env: Record<string, string> = {}): Record<string, string | undefined> {
  return cleanEnvironment({ PYTHONPATH: PYTHON_KIT, PYTHONDONTWRITEBYTECODE: '1', ...env })
}

/** An error as Python raised it. */
export class PythonError extends Error {
  readonly shape: Readonly<Record<string, unknown>>

  constructor(shape: Readonly<Record<string, unknown>>) {
    super(String(shape.message))
    this.shape = shape
  }
}

export interface PythonEvent {
  readonly id: number
  readonly conversation_id: number | null
  readonly payload: unknown
  readonly attempts: number
}

/** Resolves when the event is done; rejects if it failed. */
export type PythonHandler = (event: PythonEvent) => unknown

export interface Counts {
  readonly waiting: number
  readonly refused: number
  readonly oldest_at: number | null
}

interface Line {
  readonly id?: number
  readonly result?: unknown
  readonly error?: Record<string, unknown>
  readonly problem?: Record<string, unknown>
  readonly handle?: PythonEvent
  readonly over?: number
  readonly followed?: number
}

export class PythonKit {
  readonly problems: PythonError[] = []
  /** Events whose handlers' context is over. */
  readonly over = new Set<number>()
  readonly followed: number[] = []
  handler: PythonHandler = () => {}
  readonly #calls = new Map<number, { resolve(value: never): void; reject(error: Error): void }>()
  readonly #write: (line: object) => void
  #count = 0

  constructor(t: TestContext, options: Record<string, unknown>) {
    const driver = join(ROOT, 'test/kits/python/driver.py')
    const child = spawn(PYTHON, [driver, JSON.stringify(options)], {
      env: pythonEnvironment(),
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    t.after(() => child.kill('SIGKILL'))
    child.stdin.on('error', () => {})
    this.#write = (line) => child.stdin.write(`${JSON.stringify(line)}\n`)
    createInterface({ input: child.stdout }).on('line', (text) => this.#read(JSON.parse(text) as Line))
    child.on('close', () => {
      for (const { reject } of this.#calls.values()) reject(new Error('Python has ended'))
    })
  }

  call<T>(call: string, args: Record<string, unknown> = {}): Promise<T> {
    const id = ++this.#count
    const done = new Promise<T>((resolve, reject) => this.#calls.set(id, { resolve, reject }))
    // Whoever awaits it sees the failure; a test that ends before does not care.
    done.catch(() => {})
    this.#write({ id, call, args })
    return within(call, done)
  }

  send(message: unknown, traceparent?: string): Promise<{ source_ref: string; receipt: { id: number } | null }> {
    return this.call('send', { message, ...(traceparent === undefined ? {} : { traceparent }) })
  }

  flush(): Promise<Counts> {
    return this.call('flush')
  }

  advance(ms: number): Promise<void> {
    return this.call('advance', { ms })
  }

  stop(name: string): void {
    this.#write({ stop: name })
  }

  #read({ id, result, error, problem, handle, over, followed }: Line): void {
    if (problem) this.problems.push(new PythonError(problem))
    if (over !== undefined) this.over.add(over)
    if (followed !== undefined) this.followed.push(followed)
    if (handle) void this.#handle(handle)
    if (id === undefined) return
    const call = this.#calls.get(id)!
    this.#calls.delete(id)
    if (error) call.reject(new PythonError(error))
    else call.resolve(result as never)
  }

  async #handle(event: PythonEvent): Promise<void> {
    const failure = await (async () => this.handler(event))().then(
      () => null,
      (error: Error) => error.message,
    )
    this.#write({ answer: event.id, failure })
  }
}

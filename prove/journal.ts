// The client's own memory: what it was about to send and what it was answered, one JSON line each.
// Promises: `intent` resolves when the line is synced, so before the first byte goes out; `answer` likewise. Lines stand
// in the order of the calls. A client that dies leaves at most one torn line at the end, which reading passes over.

import { closeSync, fdatasync, openSync, readFileSync, write } from 'node:fs'
import { promisify } from 'node:util'

const writeTo = promisify(write) as (file: number, text: string) => Promise<unknown>
const syncTo = promisify(fdatasync)

export interface Intent {
  readonly type: 'intent'
  readonly attempt: number
  /** The number of the message: attempts with the same bytes and the same reference share it. */
  readonly message: number
  readonly ref: string | null
  readonly key: string | null
  readonly channel: string | null
  /** This message goes out under the reference of that one, with other bytes. */
  readonly conflictsWith: number | null
  /** In base64, with the first attempt of a message. */
  readonly body?: string
}

export type Outcome = 'acknowledged' | 'unknown' | 'refused'

export interface AnswerLine {
  readonly type: 'answer'
  readonly attempt: number
  readonly outcome: Outcome
  /** 0: no answer came. */
  readonly status: number
  readonly id: number | null
  readonly duplicate: boolean
  /** The code of the error in the answer, or of the connection. */
  readonly error: string | null
}

export type Line = Intent | AnswerLine

export class Journal {
  readonly path: string
  readonly #file: number
  #waiting: string[] = []
  #flushing: Promise<void> | null = null
  #next: Promise<void> | null = null

  constructor(path: string) {
    this.path = path
    this.#file = openSync(path, 'ax', 0o600)
  }

  write(line: Line): Promise<void> {
    this.#waiting.push(`${JSON.stringify(line)}\n`)
    // Lines that are added during a sync share the next one.
    this.#next ??= (this.#flushing ?? Promise.resolve()).then(() => this.#flush())
    return this.#next
  }

  async close(): Promise<void> {
    while (this.#next ?? this.#flushing) await (this.#next ?? this.#flushing)
    closeSync(this.#file)
  }

  async #flush(): Promise<void> {
    this.#flushing = this.#next
    this.#next = null
    const text = this.#waiting.join('')
    this.#waiting = []
    await writeTo(this.#file, text)
    await syncTo(this.#file)
    if (this.#next === null) this.#flushing = null
  }
}

/** Everything that was written, in order. */
export function readJournal(path: string): Line[] {
  const text = readFileSync(path, 'utf8')
  // What follows the last line break was torn by the client's own death: nothing was sent on its behalf.
  const whole = text.slice(0, text.lastIndexOf('\n') + 1)
  return whole
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Line)
}

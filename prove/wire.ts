// A connection that sends one message after the other and reports each answer. Not an HTTP client, whose cost would be
// measured too.
// Promises: an answer counts when it is complete; a waiting caller gets an error when the connection is lost.

import { connect, type Socket } from 'node:net'
import { RequestBuffer } from '../bench/load/request.ts'

export interface WireAnswer {
  /** 0: no answer. */
  readonly status: number
  readonly hasRetryAfter: boolean
  readonly isSureNotStored: boolean
}

const NO_ANSWER: WireAnswer = { status: 0, hasRetryAfter: false, isSureNotStored: false }

export class Wire {
  readonly #socket: Socket
  readonly #request: RequestBuffer
  #waiting: ((answer: WireAnswer) => void) | null = null
  #text = ''
  #isOpen = true
  readonly opened: Promise<boolean>

  constructor(port: number, token: string, onClosed: () => void) {
    this.#request = new RequestBuffer(port, token)
    this.#socket = connect({ host: '127.0.0.1', port, noDelay: true })
    this.opened = new Promise((resolve) => {
      this.#socket.once('connect', () => resolve(true)).once('close', () => resolve(false))
    })
    this.#socket.setEncoding('latin1')
    this.#socket.on('data', (chunk: string) => this.#onText(chunk))
    this.#socket.on('error', () => {})
    this.#socket.on('close', () => {
      this.#isOpen = false
      this.#settle(NO_ANSWER)
      onClosed()
    })
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** One at a time. */
  send(onAnswer: (answer: WireAnswer) => void): void {
    this.#waiting = onAnswer
    if (this.#isOpen) this.#socket.write(this.#request.next())
    else this.#settle(NO_ANSWER)
  }

  close(): void {
    this.#socket.destroy()
  }

  #onText(chunk: string): void {
    this.#text += chunk
    const head = this.#text.indexOf('\r\n\r\n')
    if (head < 0) return
    const length = Number(/\r\ncontent-length: *(\d+)/i.exec(this.#text)?.[1] ?? 0)
    if (this.#text.length < head + 4 + length) return
    const text = this.#text
    this.#text = ''
    this.#settle({
      status: Number(text.slice(9, 12)),
      hasRetryAfter: /\r\nretry-after: *\d+/i.test(text),
      isSureNotStored: text.includes('"stored":"no"'),
    })
  }

  #settle(answer: WireAnswer): void {
    const waiting = this.#waiting
    this.#waiting = null
    waiting?.(answer)
  }
}

// One keep-alive connection that sends requests as bytes and reads their answers, for victims and attackers alike.
// Promises: an answer counts when it is whole; when the connection ends, every request that waits gets status 0.

import { connect, type Socket } from 'node:net'

export interface Reply {
  /** 0: no answer. */
  readonly status: number
  /** In latin1; null unless it was asked for. */
  readonly body: string | null
}

interface Waiting {
  readonly isBodyWanted: boolean
  resolve(reply: Reply): void
}

/** So that nobody waits for ever. */
const IDLE_MS = 60_000
const NO_REPLY: Reply = { status: 0, body: null }

export interface WireOptions {
  readonly port: number
  /** Attackers come from another address than their victims. */
  readonly localAddress?: string
}

export class Wire {
  readonly #socket: Socket
  readonly #waiting: Waiting[] = []
  #text = ''
  /** Bytes of the current answer that are still to come and that nobody wants. */
  #skip = 0
  #isOpen = true
  readonly opened: Promise<boolean>
  readonly closed: Promise<void>

  constructor({ port, localAddress }: WireOptions) {
    this.#socket = connect({ host: '127.0.0.1', port, noDelay: true, ...(localAddress ? { localAddress } : {}) })
    this.opened = new Promise((resolve) => {
      this.#socket.once('connect', () => resolve(true)).once('close', () => resolve(false))
    })
    this.closed = new Promise((resolve) => {
      this.#socket.once('close', () => resolve())
    })
    this.#socket.setTimeout(IDLE_MS, () => this.close())
    this.#socket.setEncoding('latin1')
    this.#socket.on('data', (chunk: string) => this.#read(chunk))
    this.#socket.on('error', () => {})
    this.#socket.on('end', () => this.close())
    this.#socket.on('close', () => this.close())
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Answers come in the order of the requests. */
  ask(request: Uint8Array, isBodyWanted = false): Promise<Reply> {
    if (!this.#isOpen) return Promise.resolve(NO_REPLY)
    return new Promise((resolve) => {
      this.#waiting.push({ isBodyWanted, resolve })
      this.#socket.write(request)
    })
  }

  /** Sends bytes whose answer nobody waits for. Resolves when the kernel has taken them or the connection has ended. */
  push(bytes: Uint8Array): Promise<void> {
    if (!this.#isOpen) return Promise.resolve()
    return new Promise((resolve) => {
      void this.closed.then(resolve)
      this.#socket.write(bytes, () => resolve())
    })
  }

  /** Reads nothing from now on. */
  stopReading(): void {
    this.#socket.pause()
  }

  close(): void {
    this.#isOpen = false
    this.#socket.destroy()
    for (const { resolve } of this.#waiting.splice(0)) resolve(NO_REPLY)
  }

  #read(chunk: string): void {
    if (this.#skip >= chunk.length) {
      this.#skip -= chunk.length
      return
    }
    this.#text += this.#skip > 0 ? chunk.slice(this.#skip) : chunk
    this.#skip = 0
    for (;;) {
      const headEnd = this.#text.indexOf('\r\n\r\n')
      if (headEnd < 0) return
      const head = this.#text.slice(0, headEnd)
      const status = Number(head.slice(9, 12))
      const bodyAt = headEnd + 4
      const length = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0)
      const isWanted = this.#waiting[0]?.isBodyWanted === true
      if (isWanted && this.#text.length < bodyAt + length) return
      const body = isWanted ? this.#text.slice(bodyAt, bodyAt + length) : null
      this.#skip = Math.max(0, bodyAt + length - this.#text.length)
      this.#text = this.#text.slice(bodyAt + length)
      this.#waiting.shift()?.resolve({ status, body })
    }
  }
}

export interface RequestParts {
  readonly method?: string
  readonly path: string
  /** Whole lines. */
  readonly headers?: readonly string[]
  readonly body?: string | Uint8Array
  readonly type?: string
}

/** A request as bytes; with a body it has its Content-Length. */
export function requestBytes({ method, path, headers = [], body, type = 'application/json' }: RequestParts): Buffer {
  const bytes = Buffer.from(body ?? '')
  const lines = [
    `${method ?? (body === undefined ? 'GET' : 'POST')} ${path} HTTP/1.1`,
    'Host: 127.0.0.1',
    ...headers,
    ...(body === undefined ? [] : [`Content-Type: ${type}`, `Content-Length: ${bytes.length}`]),
  ]
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), bytes])
}

export function bearer(token: string): string {
  return `Authorization: Bearer ${token}`
}

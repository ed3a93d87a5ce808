// One keep-alive connection in a closed loop: sends a request, reads the whole answer, reports it, and sends the next
// one at once or when it is due.
// Promises: an answer counts only if it is HTTP/1.1 200, framed by Content-Length to the byte, and begins with
// {"ok":true.
// Uses `onread` with its own buffer: no stream machinery and no allocation per read.

import { connect, type Socket } from 'node:net'
import { RequestBuffer } from './request.ts'

/** Callbacks of a connection. `mayStart` decides whether another request is sent, `dueInMs` when. */
export interface Listener {
  answered(latencyMs: number, now: number): void
  failed(kind: string, detail: string): void
  mayStart(now: number): boolean
  dueInMs(now: number): number
  finished(): void
}

const READ_BUFFER_BYTES = 16 * 1024
const LARGEST_ANSWER = 256 * 1024

export class Connection {
  readonly #port: number
  readonly #listener: Listener
  readonly #request: RequestBuffer
  readonly #readBuffer = Buffer.allocUnsafe(READ_BUFFER_BYTES)
  #socket: Socket | null = null
  #partial = ''
  #sentAt = 0
  #inFlight = false
  #done = false

  constructor(port: number, token: string, listener: Listener) {
    this.#port = port
    this.#listener = listener
    this.#request = new RequestBuffer(port, token)
  }

  open(): Promise<void> {
    return new Promise((resolve, reject) => {
      const socket = connect({
        host: '127.0.0.1',
        port: this.#port,
        noDelay: true,
        onread: { buffer: this.#readBuffer, callback: (length) => this.#onBytes(length) },
      })
      this.#socket = socket
      socket.once('connect', resolve)
      // An error is always followed by 'close', which records the loss.
      socket.on('error', reject)
      socket.on('close', () => this.#onClose(socket))
    })
  }

  /** Sends the next request, or closes the connection if the session needs no more. */
  start(now: number): void {
    if (!this.#listener.mayStart(now)) {
      this.finish()
      return
    }
    const dueInMs = this.#listener.dueInMs(now)
    if (dueInMs > 0) setTimeout(() => this.#send(performance.now()), dueInMs)
    else this.#send(now)
  }

  #send(now: number): void {
    if (this.#done) return
    this.#inFlight = true
    this.#sentAt = now
    this.#socket?.write(this.#request.next())
  }

  finish(): void {
    if (this.#done) return
    this.#done = true
    this.#socket?.destroy()
    this.#listener.finished()
  }

  #onBytes(length: number): boolean {
    const chunk = this.#readBuffer.toString('latin1', 0, length)
    const text = this.#partial === '' ? chunk : this.#partial + chunk
    const headEnd = text.indexOf('\r\n\r\n')
    const bodyBytes = headEnd < 0 ? 0 : contentLength(text, headEnd)
    if (bodyBytes < 0) return this.#break('answer without content-length', text)
    const end = headEnd + 4 + bodyBytes
    if (headEnd < 0 || text.length < end) {
      if (text.length > LARGEST_ANSWER) return this.#break('answer too large', text)
      this.#partial = text
      return true
    }
    if (text.length > end || !this.#inFlight) return this.#break('bytes that nobody asked for', text)
    this.#partial = ''
    this.#inFlight = false
    const now = performance.now()
    if (!text.startsWith('HTTP/1.1 200 ')) this.#listener.failed(`status ${text.slice(9, 12)}`, text)
    else if (!text.startsWith('{"ok":true', headEnd + 4)) this.#listener.failed('body is not ok:true', text)
    else this.#listener.answered(now - this.#sentAt, now)
    this.start(now)
    return true
  }

  /** The stream can no longer be trusted: drops it. `close` opens the next one. */
  #break(kind: string, text: string): boolean {
    this.#inFlight = false
    this.#listener.failed(kind, text)
    this.#socket?.destroy()
    return false
  }

  #onClose(socket: Socket): void {
    if (this.#done || socket !== this.#socket) return
    if (this.#inFlight) this.#listener.failed('connection lost', '')
    this.#inFlight = false
    this.#partial = ''
    this.open().then(
      () => this.start(performance.now()),
      (error: Error) => {
        this.#listener.failed('connection refused', error.message)
        this.finish()
      },
    )
  }
}

function contentLength(text: string, headEnd: number): number {
  const match = /\r\ncontent-length: *(\d+)\r\n/i.exec(text)
  return match && match.index < headEnd ? Number(match[1]) : -1
}

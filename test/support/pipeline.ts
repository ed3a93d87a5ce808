// Many requests at little cost: connections on which requests follow each other without waiting for answers, which come
// back in order. For tests whose point is how many requests meet, not what a client library does.

import net from 'node:net'
import { once } from 'node:events'

export interface PipelinedAnswer {
  readonly status: number
  readonly id: number
  readonly isDuplicate: boolean
  readonly isConflict: boolean
}

export class Pipeline {
  readonly #socket: net.Socket
  readonly #head: string
  readonly #waiting: { resolve(answer: PipelinedAnswer): void; reject(error: Error): void }[] = []
  #partial = ''

  private constructor(socket: net.Socket, token: string) {
    this.#socket = socket
    this.#head =
      `POST /v1/inbox/events HTTP/1.1\r\nHost: intray.test\r\nAuthorization: Bearer ${token}\r\n` +
      'Content-Type: application/json\r\nContent-Length: '
    socket.setNoDelay(true)
    socket.on('data', (chunk: Buffer) => this.#read(chunk.toString('latin1')))
    socket.on('error', () => {})
    socket.on('close', () => {
      for (const { reject } of this.#waiting.splice(0)) reject(new Error('the connection was closed'))
    })
  }

  static async open(port: number, token: string): Promise<Pipeline> {
    const socket = net.connect({ port, host: '127.0.0.1' })
    await once(socket, 'connect')
    return new Pipeline(socket, token)
  }

  /** All bodies at once; the answers in their order. */
  send(bodies: readonly string[]): Promise<PipelinedAnswer[]> {
    const answers = bodies.map(
      () => new Promise<PipelinedAnswer>((resolve, reject) => this.#waiting.push({ resolve, reject })),
    )
    this.#socket.write(bodies.map((body) => `${this.#head}${Buffer.byteLength(body)}\r\n\r\n${body}`).join(''))
    return Promise.all(answers)
  }

  close(): void {
    this.#socket.destroy()
  }

  #read(chunk: string): void {
    const text = this.#partial + chunk
    let at = 0
    for (;;) {
      const headEnd = text.indexOf('\r\n\r\n', at)
      if (headEnd === -1) break
      const length = Number(/\r\ncontent-length: *(\d+)/i.exec(text.slice(at, headEnd))?.[1])
      const end = headEnd + 4 + length
      if (text.length < end) break
      const body = JSON.parse(text.slice(headEnd + 4, end)) as { id?: number; duplicate?: boolean; conflict?: boolean }
      this.#waiting.shift()?.resolve({
        status: Number(text.slice(at + 9, at + 12)),
        id: body.id ?? 0,
        isDuplicate: body.duplicate === true,
        isConflict: body.conflict === true,
      })
      at = end
    }
    this.#partial = text.slice(at)
  }
}

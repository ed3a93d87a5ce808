// A small HTTP client for tests: sends what it is told, byte for byte where it matters, and holds every answer against
// the published contract.

import http from 'node:http'
import net from 'node:net'
import tls from 'node:tls'
import { assertDocumented } from './contract.ts'

export interface SendOptions {
  readonly method?: string
  readonly path: string
  readonly headers?: Record<string, string | string[]>
  readonly body?: string | Uint8Array
  readonly agent?: http.Agent
  /** Sends the body in chunks without a length. */
  readonly chunked?: boolean
}

export interface TestAnswer {
  readonly status: number
  readonly headers: http.IncomingHttpHeaders
  readonly text: string
  /** The parsed body; undefined if it is not JSON. */
  readonly json: Record<string, unknown> | undefined
}

export function send(port: number, options: SendOptions): Promise<TestAnswer> {
  const { method = 'GET', path, headers = {}, body, agent, chunked } = options
  return new Promise((resolve, reject) => {
    const length = body === undefined || chunked ? {} : { 'Content-Length': String(Buffer.byteLength(body)) }
    const req = http.request({
      host: '127.0.0.1',
      port,
      method,
      path,
      agent: agent ?? false,
      headers: { ...length, ...headers },
    })
    req.on('response', (res) => {
      const chunks: Buffer[] = []
      res.on('data', (chunk: Buffer) => chunks.push(chunk))
      res.on('error', reject)
      res.on('end', () => {
        try {
          const answer = answerOf(res.statusCode ?? 0, res.headers, Buffer.concat(chunks).toString('utf8'))
          assertDocumented(method, path, answer)
          resolve(answer)
        } catch (error) {
          reject(error)
        }
      })
    })
    req.on('error', reject)
    if (body !== undefined && chunked) req.write(body)
    req.end(chunked ? undefined : body)
  })
}

function answerOf(status: number, headers: http.IncomingHttpHeaders, text: string): TestAnswer {
  const isJson = (headers['content-type'] ?? '').startsWith('application/json')
  return {
    status,
    headers,
    text,
    json: isJson && text !== '' ? (JSON.parse(text.replace(/^\uFEFF/, '')) as Record<string, unknown>) : undefined,
  }
}

/** A bare connection: writes what it is given and tells everything that came back. */
export class RawConnection {
  readonly socket: net.Socket
  readonly closed: Promise<void>
  #received = Buffer.alloc(0)
  #wake: () => void = () => {}

  private constructor(socket: net.Socket) {
    this.socket = socket
    this.closed = new Promise((resolve) => socket.once('close', () => resolve()))
    socket.on('error', () => {})
    socket.on('data', (chunk: Buffer) => {
      this.#received = Buffer.concat([this.#received, chunk])
      this.#wake()
    })
    socket.on('close', () => this.#wake())
  }

  static async open(port: number): Promise<RawConnection> {
    const socket = net.connect({ port, host: '127.0.0.1' })
    await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject))
    return new RawConnection(socket)
  }

  /** The same over TLS, for a server with this certificate. */
  static async openTls(port: number, ca: string, options: tls.ConnectionOptions = {}): Promise<RawConnection> {
    const socket = tls.connect({ port, host: '127.0.0.1', ca, ...options })
    await new Promise<void>((resolve, reject) => {
      socket.once('secureConnect', resolve).once('error', reject)
      socket.once('close', () => reject(new Error('closed in the handshake')))
    })
    return new RawConnection(socket)
  }

  write(text: string | Uint8Array): void {
    this.socket.write(text)
  }

  get text(): string {
    return this.#received.toString('latin1')
  }

  /** Everything received, once it satisfies the condition or the connection is closed. */
  async until(condition: (text: string) => boolean): Promise<string> {
    while (!condition(this.text) && !this.socket.closed) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    return this.text
  }

  /** Waits for that many whole answers (each with a Content-Length) and returns them parsed. */
  async answers(count: number): Promise<TestAnswer[]> {
    await this.until((text) => parseAnswers(text).length >= count)
    return parseAnswers(this.text)
  }

  destroy(): void {
    this.socket.destroy()
  }
}

/** Splits a stream of answers by their Content-Length. 1xx answers are left out. */
export function parseAnswers(stream: string): TestAnswer[] {
  const answers: TestAnswer[] = []
  let rest = stream
  for (;;) {
    const end = rest.indexOf('\r\n\r\n')
    if (end === -1) return answers
    const [statusLine = '', ...lines] = rest.slice(0, end).split('\r\n')
    const headers: http.IncomingHttpHeaders = {}
    for (const line of lines)
      headers[line.slice(0, line.indexOf(':')).toLowerCase()] = line.slice(line.indexOf(':') + 1).trim()
    const status = Number(statusLine.split(' ')[1])
    const length = Number(headers['content-length'] ?? 0)
    if (rest.length < end + 4 + length) return answers
    const body = Buffer.from(rest.slice(end + 4, end + 4 + length), 'latin1').toString('utf8')
    if (status >= 200) answers.push(answerOf(status, headers, body))
    rest = rest.slice(end + 4 + length)
  }
}

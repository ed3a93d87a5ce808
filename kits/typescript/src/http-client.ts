// HTTP to one service: a deadline for the connection and one for the whole request, connections that are kept, no redirects.
// Every failure is an Unavailable; the token is in the request and nowhere else.

import http from 'node:http'
import https from 'node:https'
import { StringDecoder } from 'node:string_decoder'
import { type Answer, errorOf } from './answers.ts'
import { Unavailable } from './errors.ts'

export interface HttpClientOptions {
  /** The address of the service; what its path has comes before the paths of calls. */
  readonly url: URL
  readonly token: string
  readonly connectTimeoutMs?: number | undefined
  readonly requestTimeoutMs?: number | undefined
  readonly maxConnections?: number
  readonly userAgent?: string
}

export interface PostOptions {
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal | undefined
  /** Added to the deadline: for calls that the service answers late on request. */
  readonly extraMs?: number
  readonly maxAnswerBytes?: number
}

export const CONNECT_TIMEOUT_MS = 5000
export const REQUEST_TIMEOUT_MS = 15_000
const MAX_ANSWER_BYTES = 65_536
const TOKEN = /^[\x21-\x7e]+$/

export class HttpClient {
  readonly #options: HttpClientOptions
  readonly #agent: http.Agent
  readonly #request: typeof http.request
  readonly #base: string

  constructor(options: HttpClientOptions) {
    const { url, token, maxConnections = Number.POSITIVE_INFINITY } = options
    if (!/^https?:$/.test(url.protocol)) throw new TypeError('url is not an address such as https://intray.example.')
    if (url.username !== '' || url.password !== '') throw new TypeError('url has a user or a password. Remove it.')
    if (!TOKEN.test(token)) throw new TypeError('token is empty, or has characters that no token has.')
    this.#options = options
    const isSecure = url.protocol === 'https:'
    const agentOptions = { keepAlive: true, maxSockets: maxConnections }
    this.#agent = isSecure ? new https.Agent(agentOptions) : new http.Agent(agentOptions)
    this.#request = isSecure ? https.request : http.request
    this.#base = url.pathname.replace(/\/$/, '')
  }

  /** Ends the connections that nobody uses. */
  close(): void {
    this.#agent.destroy()
  }

  async post(path: string, body: Uint8Array, options: PostOptions = {}): Promise<Answer> {
    try {
      return await this.#post(path, body, options)
    } catch (error) {
      // The service closed a kept connection while the request was on its way. A message sent twice is stored once.
      if (error instanceof StaleConnection) return this.#post(path, body, options)
      throw error
    }
  }

  #post(path: string, body: Uint8Array, options: PostOptions): Promise<Answer> {
    const { headers = {}, signal, extraMs = 0, maxAnswerBytes = MAX_ANSWER_BYTES } = options
    const { requestTimeoutMs = REQUEST_TIMEOUT_MS } = this.#options
    const length = { 'Content-Type': 'application/json', 'Content-Length': String(body.length), ...headers }
    return new Promise((resolve, reject) => {
      const req = this.#start('POST', path, length, signal, (error) => {
        clearTimeout(deadline)
        reject(error)
      })
      const ms = requestTimeoutMs + extraMs
      const deadline = setTimeout(() => req.destroy(new Late(`no answer within ${ms / 1000} s`)), ms)
      req.on('response', (response) => {
        const answered = answerOf(response, maxAnswerBytes).then(resolve, reject)
        void answered.then(() => clearTimeout(deadline))
      })
      req.end(body)
    })
  }

  /** An answer that does not end. It has a deadline for its head, and for an error as a whole; its reader watches the rest. */
  open(path: string, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<http.IncomingMessage> {
    const { requestTimeoutMs = REQUEST_TIMEOUT_MS } = this.#options
    return new Promise((resolve, reject) => {
      const req = this.#start('GET', path, headers, signal, (error) => {
        clearTimeout(deadline)
        reject(error)
      })
      const deadline = setTimeout(() => req.destroy(new Late('no answer in time')), requestTimeoutMs)
      req.on('response', (response) => {
        if (response.statusCode === 200) {
          clearTimeout(deadline)
          return resolve(response)
        }
        const answered = answerOf(response, MAX_ANSWER_BYTES).then((answer) => reject(errorOf(answer)), reject)
        void answered.then(() => clearTimeout(deadline))
      })
      req.end()
    })
  }

  #start(
    method: string,
    path: string,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal | undefined,
    onFailure: (error: Error) => void,
  ): http.ClientRequest {
    const { url, token, connectTimeoutMs = CONNECT_TIMEOUT_MS, userAgent = 'intray-client' } = this.#options
    const req = this.#request({
      protocol: url.protocol,
      hostname: url.hostname.replace(/^\[|\]$/g, ''),
      port: url.port,
      path: `${this.#base}${path}`,
      method,
      agent: this.#agent,
      headers: { ...headers, Authorization: `Bearer ${token}`, 'User-Agent': userAgent },
    })
    const abort = (): void => void req.destroy(new Aborted('the request was aborted'))
    if (signal?.aborted) abort()
    else signal?.addEventListener('abort', abort)
    let isAnswered = false
    req.on('response', () => {
      isAnswered = true
    })
    req.on('close', () => {
      signal?.removeEventListener('abort', abort)
      // A 101, which nobody asked for, ends in no error.
      if (!isAnswered) onFailure(unanswered(new Error('the connection ended without an answer')))
    })
    req.on('socket', (socket) => {
      if (!socket.connecting) return
      const late = setTimeout(
        () => req.destroy(new Late(`no connection within ${connectTimeoutMs / 1000} s`)),
        connectTimeoutMs,
      )
      socket.once(url.protocol === 'https:' ? 'secureConnect' : 'connect', () => clearTimeout(late))
      socket.once('close', () => clearTimeout(late))
    })
    req.on('error', (error: NodeJS.ErrnoException) => {
      const isStale = req.reusedSocket && error.code === 'ECONNRESET'
      onFailure(isStale ? new StaleConnection(null, 'ECONNRESET', error.message) : unanswered(error))
    })
    return req
  }
}

class Late extends Error {
  readonly code = 'timeout'
}
class Aborted extends Error {
  readonly code = 'aborted'
}
class StaleConnection extends Unavailable {}

function unanswered(error: NodeJS.ErrnoException): Unavailable {
  return new Unavailable(null, error.code ?? 'no answer', error.message || `no answer (${error.code})`)
}

async function answerOf(response: http.IncomingMessage, maxBytes: number): Promise<Answer> {
  try {
    const text = await readText(response, maxBytes)
    return { status: response.statusCode ?? 0, headers: response.headers, text }
  } catch (error) {
    // A request whose connection has ended emits no error.
    response.destroy()
    throw unanswered(error as Error)
  }
}

/** Rejects an answer that is longer than any of the service, and one that breaks off. */
function readText(response: http.IncomingMessage, maxBytes: number): Promise<string> {
  const decoder = new StringDecoder('utf8')
  return new Promise((resolve, reject) => {
    let text = ''
    let bytes = 0
    response.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > maxBytes) reject(new Error(`the answer is longer than ${maxBytes} bytes`))
      else text += decoder.write(chunk)
    })
    response.on('error', reject)
    response.on('end', () => resolve(text + decoder.end()))
  })
}

// A reader of GET /v1/inbox/stream that takes what comes, block by block, and holds every event against the contract.

import http from 'node:http'
import { assertDocumented, assertMatches } from './contract.ts'

export interface StreamOptions {
  readonly after?: number | string
  readonly lastEventId?: number | string
  readonly method?: string
  readonly agent?: http.Agent
  /** Instead of the token. */
  readonly credentials?: Record<string, string>
}

export interface StreamBlock {
  readonly id?: string
  readonly event?: string
  readonly data?: Record<string, unknown>
  readonly retry?: string
  /** A comment, without its colon. */
  readonly comment?: string
}

export class EventStream {
  readonly status: number
  readonly headers: http.IncomingHttpHeaders
  readonly blocks: StreamBlock[] = []
  /** The events and revisions so far. */
  readonly events: Record<string, unknown>[] = []
  readonly ids: number[] = []
  readonly #response: http.IncomingMessage
  /** `end`: the answer came to its end. `cut`: it broke off. */
  readonly closed: Promise<'end' | 'cut'>
  #partial = ''
  #isClosed = false
  #wake: () => void = () => {}

  private constructor(response: http.IncomingMessage) {
    this.#response = response
    this.status = response.statusCode ?? 0
    this.headers = response.headers
    response.setEncoding('utf8')
    response.on('data', (chunk: string) => this.#read(chunk))
    response.on('error', () => {})
    this.closed = new Promise((resolve) =>
      response.once('close', () => {
        this.#isClosed = true
        this.#wake()
        resolve(response.complete ? 'end' : 'cut')
      }),
    )
  }

  /** Resolves once the head of the answer is there. */
  static open(port: number, token: string, options: StreamOptions = {}): Promise<EventStream> {
    const { after, lastEventId, method = 'GET', agent, credentials } = options
    const path = `/v1/inbox/stream${after === undefined ? '' : `?after=${after}`}`
    const headers = {
      ...(credentials ?? { Authorization: `Bearer ${token}` }),
      ...(lastEventId === undefined ? {} : { 'Last-Event-ID': String(lastEventId) }),
    }
    return new Promise((resolve, reject) => {
      const req = http.request({ host: '127.0.0.1', port, path, method, headers, agent: agent ?? false })
      req.once('error', reject)
      req.once('response', (response) => {
        const stream = new EventStream(response)
        const { status } = stream
        assertDocumented(method, path, { status, headers: response.headers, text: '', json: undefined })
        resolve(stream)
      })
      req.end()
    })
  }

  /** The last id it was told, as a client would send it when it comes back. */
  get lastEventId(): string | undefined {
    return this.blocks.findLast(({ id }) => id !== undefined)?.id
  }

  /** Returns when the condition holds; fails if the stream is closed before. */
  async until(condition: (stream: EventStream) => boolean): Promise<this> {
    while (!condition(this)) {
      if (this.#isClosed) throw new Error(`the stream was closed after ${JSON.stringify(this.blocks.slice(-5))}`)
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    return this
  }

  /** Has the condition of `until` looked at again. */
  wake(): void {
    this.#wake()
  }

  pause(): void {
    this.#response.pause()
  }

  resume(): void {
    this.#response.resume()
  }

  close(): void {
    this.#response.destroy()
  }

  #read(chunk: string): void {
    const parts = (this.#partial + chunk).split('\n\n')
    this.#partial = parts.pop()!
    for (const part of parts) {
      const block = parseBlock(part)
      this.blocks.push(block)
      if (!block.data) continue
      this.events.push(block.data)
      this.ids.push(block.data.id as number)
    }
    this.#wake()
  }
}

function parseBlock(text: string): StreamBlock {
  const block: Record<string, unknown> = {}
  for (const line of text.split('\n')) {
    const at = line.indexOf(':')
    if (at === 0) block.comment = line.slice(1).trim()
    else block[line.slice(0, at)] = line.slice(at + 1).trimStart()
  }
  if (typeof block.data === 'string') {
    block.data = JSON.parse(block.data)
    assertMatches('FollowedEvent', block.data)
  }
  return block
}

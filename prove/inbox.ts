// What is stored, read as a processor reads it: through the HTTP API, page by page, every payload by its bytes.
// Promises: everything that was acknowledged before the call is in the answer; where the index lags, it is waited for.

import { createHash } from 'node:crypto'
import http from 'node:http'

export interface StoredRow {
  readonly id: number
  readonly kind: 'event' | 'revision'
  readonly revises: number | null
  readonly source_ref: string | null
  readonly channel_ref: string | null
  readonly conversation_id: number | null
  readonly received_at: string
  readonly snippet: string | null
  readonly size: number
  /** As the service says it is. */
  readonly sha256: string
}

export interface StoredPayload {
  readonly status: number
  /** Of the bytes that came; null where none did. */
  readonly sha256: string | null
  readonly bytes: Buffer
}

export interface Reply {
  readonly status: number
  readonly body: Buffer
}

const PAGE = 200
const READERS = 8
const LAG_LIMIT_MS = 120_000

export class Inbox {
  readonly #port: () => number
  readonly #token: string
  readonly #agent = new http.Agent({ keepAlive: true, maxSockets: READERS })

  constructor(port: () => number, processorToken: string) {
    this.#port = port
    this.#token = processorToken
  }

  close(): void {
    this.#agent.destroy()
  }

  /** Every event and revision of the tenant, oldest first. */
  async rows(): Promise<StoredRow[]> {
    const rows = await this.#pages<StoredRow>('/v1/inbox/events', 'events')
    return rows.reverse()
  }

  async payload(id: number): Promise<StoredPayload> {
    const { status, body } = await this.ask('GET', `/v1/inbox/events/${id}/payload`)
    const sha256 = status === 200 ? createHash('sha256').update(body).digest('hex') : null
    return { status, sha256, bytes: body }
  }

  /** The payloads of many, by id. */
  async payloads(ids: readonly number[]): Promise<Map<number, StoredPayload>> {
    const found = new Map<number, StoredPayload>()
    const left = [...ids]
    const read = async (): Promise<void> => {
      for (let id = left.pop(); id !== undefined; id = left.pop()) found.set(id, await this.payload(id))
    }
    await Promise.all(Array.from({ length: READERS }, read))
    return found
  }

  /** channel_ref → the ids of its events, in the order of the API. */
  async conversations(): Promise<Map<string, number[]>> {
    const list = await this.#pages<{ id: number; channel_ref: string }>('/v1/inbox/conversations', 'conversations')
    const found = new Map<string, number[]>()
    for (const { id, channel_ref } of list) {
      const events = await this.#pages<{ id: number }>(`/v1/inbox/conversations/${id}/events`, 'events')
      found.set(
        channel_ref,
        events.map((event) => event.id),
      )
    }
    return found
  }

  async #pages<Item>(path: string, name: string): Promise<Item[]> {
    const items: Item[] = []
    const deadline = Date.now() + LAG_LIMIT_MS
    let cursor: string | null | undefined
    while (cursor !== null) {
      const after: string = cursor === undefined ? '' : `&cursor=${encodeURIComponent(cursor)}`
      const { status, body } = await this.ask('GET', `${path}?limit=${PAGE}${after}`)
      if (status !== 200) throw new Error(`GET ${path} answered ${status}: ${body.toString().slice(0, 300)}`)
      const page = JSON.parse(body.toString()) as Record<string, unknown>
      if (page.index_lag === undefined) {
        items.push(...(page[name] as Item[]))
        cursor = page.next as string | null
        continue
      }
      if (Date.now() > deadline) throw new Error(`the index is still ${String(page.index_lag)} rows behind`)
      // From the beginning: newest first, what the index did not cover yet would have been on the first page.
      items.length = 0
      cursor = undefined
    }
    return items
  }

  ask(method: string, path: string, body?: unknown): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const req = http.request({
        host: '127.0.0.1',
        port: this.#port(),
        method,
        path,
        agent: this.#agent,
        headers: {
          Authorization: `Bearer ${this.#token}`,
          ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        },
      })
      req.on('error', reject)
      req.on('response', (res) => {
        const chunks: Buffer[] = []
        res.on('data', (chunk: Buffer) => chunks.push(chunk))
        res.on('error', reject)
        res.on('end', () => resolve({ status: res.statusCode ?? 0, body: Buffer.concat(chunks) }))
      })
      req.end(body === undefined ? undefined : JSON.stringify(body))
    })
  }
}

// A processor client of the bench: keep-alive calls with its token; also inserts events straight into a database.
// Promises: an answer other than 200 ends the run with its text.

import { randomBytes } from 'node:crypto'
import http from 'node:http'
import { newUuid } from '../../src/runtime/id.ts'
import { openStore } from '../../src/store/open.ts'

export class Processor {
  readonly #port: number
  readonly #token: string
  readonly #agent: http.Agent

  constructor(port: number, token: string, maxSockets = 64) {
    this.#port = port
    this.#token = token
    this.#agent = new http.Agent({ keepAlive: true, maxSockets })
  }

  get(path: string): Promise<Record<string, unknown>> {
    return this.#call('GET', path, null)
  }

  post(path: string, body: object): Promise<Record<string, unknown>> {
    return this.#call('POST', path, JSON.stringify(body))
  }

  close(): void {
    this.#agent.destroy()
  }

  #call(method: string, path: string, body: string | null): Promise<Record<string, unknown>> {
    const headers = {
      Authorization: `Bearer ${this.#token}`,
      ...(body === null ? {} : { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }),
    }
    return new Promise((resolve, reject) => {
      const request = http.request({ port: this.#port, host: '127.0.0.1', agent: this.#agent, method, path, headers })
      request.on('error', reject)
      request.on('response', (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString()
          if (response.statusCode === 200) resolve(JSON.parse(text) as Record<string, unknown>)
          else reject(new Error(`${method} ${path} was answered ${response.statusCode}: ${text}`))
        })
      })
      request.end(body)
    })
  }
}

/** Inserts events with a random reference, a name and a text, over these conversations of account 7 of company 42. */
export async function putEvents(
  databaseUrl: string,
  count: number,
  channelOf: (n: number) => string,
  onProgress: (stored: number) => void,
): Promise<void> {
  const store = await openStore(databaseUrl, { role: 'tool' })
  try {
    for (let n = 0; n < count; n += 500) {
      const size = Math.min(500, count - n)
      await store.journal.append(Array.from({ length: size }, (_, i) => newEvent(channelOf(n + i), n + i)))
      onProgress(n + size)
    }
  } finally {
    await store.close()
  }
}

const NAMES = ['Ada Lovelace', 'Grace Hopper', 'Edsger Dijkstra', 'Barbara Liskov', 'Donald Knuth', 'Frances Allen']

function newEvent(channelRef: string, n: number) {
  const name = NAMES[n % NAMES.length]!
  const body = {
    contact: { name, email: `sender${n % 1000}@example.org` },
    message: { type: 'text', text: `Do you ship order ${n} to Malta? ${randomBytes(20).toString('hex')}` },
    meta: { form_id: 12 },
  }
  return {
    mintedKey: newUuid(),
    accountId: 7,
    companyId: 42,
    receivedAt: Date.now(),
    keyId: 'benchbench',
    scope: 'cf',
    route: '/v1/inbox/events',
    sourceRef: `bench:${randomBytes(8).toString('hex')}`,
    channelRef,
    idempotencyKey: null,
    contentType: 'application/json',
    origin: 'intake' as const,
    requestId: newUuid(),
    traceparent: null,
    userAgent: 'bench',
    remoteAddr: '127.0.0.1',
    recipe: null,
    payload: Buffer.from(JSON.stringify(body)),
  }
}

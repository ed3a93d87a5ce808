// A receiver of pushes on loopback: records every request, verifies its signature with the published library, and answers as it is told.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { Webhook } from 'standardwebhooks'

export interface Received {
  /** webhook-id. */
  readonly id: string
  readonly eventId: number
  readonly attempt: number
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
  /** The body as JSON, if it is. */
  readonly json: Record<string, unknown>
  /** Counts from 0. */
  readonly n: number
}

export type Respond = (received: Received, res: ServerResponse, socket: Socket) => void

export const ok: Respond = (_received, res) => void res.end('ok')

export const status =
  (code: number, headers: Record<string, string> = {}, body = ''): Respond =>
  (_received, res) =>
    void res.writeHead(code, headers).end(body)

export interface Receiver {
  readonly url: string
  readonly port: number
  readonly received: Received[]
  connections: number
  /** Changes what it answers from now on. */
  respond: Respond
  close(): Promise<void>
}

export async function startReceiver(t: TestContext, respond: Respond = ok, port = 0): Promise<Receiver> {
  const server = createServer((req, res) => {
    const parts: Buffer[] = []
    req.on('data', (part: Buffer) => parts.push(part))
    req.on('end', () => {
      const one = receivedOf(req, Buffer.concat(parts), receiver.received.length)
      receiver.received.push(one)
      receiver.respond(one, res, req.socket)
    })
  })
  server.on('connection', () => {
    receiver.connections += 1
  })
  // A receiver that goes away keeps no test waiting.
  const close = async () => {
    server.closeAllConnections()
    await new Promise<void>((resolve) => server.close(() => resolve()))
  }
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  t.after(close)
  const { port: taken } = server.address() as AddressInfo
  const receiver: Receiver = {
    url: `http://127.0.0.1:${taken}/hook?key=in-the-query`,
    port: taken,
    received: [],
    connections: 0,
    respond,
    close,
  }
  return receiver
}

function receivedOf(req: IncomingMessage, body: Buffer, n: number): Received {
  const header = (name: string) => String(req.headers[name] ?? '')
  return {
    id: header('webhook-id'),
    eventId: Number(header('intray-event-id')),
    attempt: Number(header('intray-attempt')),
    headers: req.headers,
    body,
    json: jsonOf(body),
    n,
  }
}

function jsonOf(body: Buffer): Record<string, unknown> {
  try {
    return JSON.parse(body.toString()) as Record<string, unknown>
  } catch {
    return {}
  }
}

/** Whether the published library takes the request for signed with this secret. */
export function isSignedWith(secret: string, { body, headers }: Received): boolean {
  try {
    new Webhook(secret).verify(body, headers as Record<string, string>)
    return true
  } catch (error) {
    // What is no JSON is verified before it is parsed.
    return error instanceof SyntaxError
  }
}

/** Which requests of one conversation came before an earlier event had been there: none, if order holds. */
export function disorder(received: readonly Received[], conversationOf: (one: Received) => unknown): number[] {
  const seen = new Map<unknown, number>()
  const wrong: number[] = []
  for (const one of received) {
    const conversation = conversationOf(one)
    const last = seen.get(conversation) ?? 0
    // A repetition of what was there before is allowed; a new event must be the next.
    if (one.eventId > last) seen.set(conversation, one.eventId)
    else if (!received.slice(0, one.n).some(({ eventId }) => eventId === one.eventId)) wrong.push(one.eventId)
  }
  return wrong
}

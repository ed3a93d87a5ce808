// A control: a small server as one is easily written, with every mistake that the suite looks for. It believes
// Content-Length alone, looks for no Host, takes LF for CRLF, answers 500 to what it cannot parse, and repeats the address
// in a header.

import net, { type AddressInfo } from 'node:net'
import type { Fortress } from './siege.ts'

export interface NaiveServer extends Fortress {
  stop(): void
}

export async function startNaiveServer(): Promise<NaiveServer> {
  let stored = new Map<number, Buffer>()
  let lastId = 0
  const keep = (payload: Buffer): number => {
    lastId += 1
    stored.set(lastId, payload)
    return lastId
  }
  const server = net.createServer((socket) => {
    let rest = Buffer.alloc(0)
    socket.on('error', () => {})
    socket.on('data', (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk])
      for (let taken = takeRequest(rest); taken !== null; taken = takeRequest(rest)) {
        rest = rest.subarray(taken.length)
        socket.write(answerTo(taken, keep))
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    takeStored: async () => {
      const taken = stored
      stored = new Map()
      return taken
    },
    stop: () => server.close(),
  }
}

interface NaiveRequest {
  readonly length: number
  readonly method: string
  readonly target: string
  readonly body: Buffer
}

function takeRequest(bytes: Buffer): NaiveRequest | null {
  const text = bytes.toString('latin1')
  const end = /\r?\n\r?\n/.exec(text)
  if (!end) return null
  const [method = '', target = ''] = text.trimStart().split(/\s+/)
  const length = Number(/content-length:\s*(\d+)/i.exec(text.slice(0, end.index))?.[1] ?? 0)
  const from = end.index + end[0].length
  if (bytes.length < from + length) return null
  return { length: from + length, method, target, body: bytes.subarray(from, from + length) }
}

function answerTo({ method, target, body }: NaiveRequest, keep: (payload: Buffer) => number): string {
  try {
    const address = decodeURIComponent(target)
    const answer = method === 'POST' ? { ok: true, id: keepJson(body, keep) } : { ok: true }
    return render(200, 'OK', JSON.stringify(answer), `X-Address: ${address}\r\n`)
  } catch (error) {
    return render(500, 'Internal Server Error', String(error))
  }
}

function keepJson(body: Buffer, keep: (payload: Buffer) => number): number {
  JSON.parse(body.toString())
  return keep(body)
}

function render(status: number, reason: string, body: string, headers = ''): string {
  return `HTTP/1.1 ${status} ${reason}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n${headers}\r\n${body}`
}

// Stands between a client and the service and does to chosen requests what proxies, portals and bad networks do. Counts what it did.

import http from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'

export interface Arrived {
  readonly method: string
  readonly path: string
  readonly headers: http.IncomingHttpHeaders
  readonly body: string
}

/**
 * `pass` goes on to the service, `hint` too, after an interim answer (103); `hang` is never answered; `cut` reaches the service, but
 * its answer is lost; else the answer: `raw` is what the connection ends with, or falls silent after.
 */
export type Fate =
  | 'pass'
  | 'hint'
  | 'hang'
  | 'cut'
  | { raw: string; isSilent?: boolean }
  | { status: number; headers?: Record<string, string>; body?: string }

export interface FaultyProxy {
  readonly url: string
  readonly arrived: readonly Arrived[]
  /** Asked for each request. */
  fate: (request: Arrived, count: number) => Fate
  /** Of answers. */
  readonly passedBytes: number
  /** Breaks off all connections. */
  cut(): void
}

export async function startProxy(t: TestContext, target: string): Promise<FaultyProxy> {
  const arrived: Arrived[] = []
  let passedBytes = 0
  const server = http.createServer(async (req, res) => {
    const chunks: Buffer[] = []
    for await (const chunk of req) chunks.push(chunk as Buffer)
    const request = {
      method: req.method!,
      path: req.url!,
      headers: req.headers,
      body: Buffer.concat(chunks).toString(),
    }
    arrived.push(request)
    const fate = proxy.fate(request, arrived.length)
    if (fate === 'hang') return
    if (typeof fate === 'object' && 'raw' in fate) {
      if (fate.isSilent) req.socket.write(fate.raw)
      else req.socket.end(fate.raw)
      return
    }
    if (typeof fate === 'object') {
      res.writeHead(fate.status, fate.headers).end(fate.body)
      return
    }
    if (fate === 'hint') res.writeEarlyHints({ link: '</style.css>; rel=preload' })
    const { host: _host, ...headers } = req.headers
    const passed = http.request(new URL(req.url!, target), { method: req.method!, headers }, (answer) => {
      if (fate === 'cut') {
        answer.resume().on('end', () => req.socket.destroy())
        return
      }
      res.writeHead(answer.statusCode!, answer.headers)
      answer.on('data', (chunk: Buffer) => (passedBytes += chunk.length))
      answer.pipe(res)
      answer.on('error', () => res.destroy())
    })
    res.on('close', () => fate !== 'cut' && passed.destroy())
    passed.on('error', () => req.socket.destroy())
    passed.end(request.body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const proxy: FaultyProxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    arrived,
    fate: () => 'pass',
    get passedBytes() {
      return passedBytes
    },
    cut: () => server.closeAllConnections(),
  }
  return proxy
}

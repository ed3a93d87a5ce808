// Serves the metrics for Prometheus on a port of its own, so that the network decides who reads them. Off by default.

import { once } from 'node:events'
import http, { type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Service } from '../runtime/service.ts'

export interface MetricsListenerOptions {
  /** host:port, or null for none. */
  readonly listen: { readonly host: string; readonly port: number } | null
  readonly render: () => Promise<string>
}

const PROMETHEUS_TEXT = 'text/plain; version=0.0.4; charset=utf-8'

export class MetricsListener implements Service {
  readonly #options: MetricsListenerOptions
  #server: Server | null = null

  constructor(options: MetricsListenerOptions) {
    this.#options = options
  }

  async start(): Promise<void> {
    const { listen, render } = this.#options
    if (listen === null) return
    const server = http.createServer({ requestTimeout: 5000, headersTimeout: 5000 }, (req, res) => {
      req.resume()
      if (req.method !== 'GET' || req.url?.split('?')[0] !== '/metrics') {
        res.writeHead(404, { 'Content-Length': 0 }).end()
        return
      }
      render().then(
        (text) => res.writeHead(200, { 'Content-Type': PROMETHEUS_TEXT }).end(text),
        () => res.writeHead(500, { 'Content-Length': 0 }).end(),
      )
    })
    this.#server = server
    // Exclusive: on a shared port a scrape would reach a random process.
    await once(server.listen({ ...listen, exclusive: true }), 'listening')
  }

  /** The URL it listens at; null if it is off. */
  get address(): string | null {
    const address = this.#server?.address() as AddressInfo | null | undefined
    return address ? `http://${address.address}:${address.port}/metrics` : null
  }

  async stop(): Promise<void> {
    const server = this.#server
    if (!server) return
    server.closeAllConnections()
    await new Promise<void>((resolve) => server.close(() => resolve()))
  }
}

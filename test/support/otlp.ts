// A receiver of traces that others wrote: Elastic's OTLP server for tests reads the requests with the protocol's own definitions.
// (The collector itself is in no package registry.) One at a time in a process.

import { createRequire } from 'node:module'
import type { TestContext } from 'node:test'

export interface ReceivedSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind: string
  readonly attributes: Readonly<Record<string, unknown>>
  readonly links?: readonly {
    readonly traceId: string
    readonly spanId: string
    readonly attributes: Readonly<Record<string, unknown>>
  }[]
  readonly status: { readonly code?: string }
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
}

interface Received {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: Readonly<Record<string, unknown>> }
    readonly scopeSpans: readonly { readonly spans: readonly ReceivedSpan[] }[]
  }[]
}

interface MockOtlpServer {
  start(): Promise<void>
  close(): Promise<void>
  readonly httpUrl: URL
}

const { MockOtlpServer, normalizeTrace } = createRequire(import.meta.url)('@elastic/mockotlpserver') as {
  readonly MockOtlpServer: new (options: object) => MockOtlpServer
  readonly normalizeTrace: (raw: unknown) => Received
}

export interface Collector {
  readonly url: string
  readonly spans: readonly ReceivedSpan[]
  /** Of the services that sent the spans. */
  readonly resources: readonly Readonly<Record<string, unknown>>[]
}

// A machine that is slow for reasons of its own is not what a test is about.
process.env.OTEL_EXPORTER_OTLP_TIMEOUT = '250000'

export async function startCollector(t: TestContext, port = 0): Promise<Collector> {
  const spans: ReceivedSpan[] = []
  const resources: Readonly<Record<string, unknown>>[] = []
  const server = new MockOtlpServer({
    logLevel: 'fatal',
    services: ['http'],
    httpHostname: '127.0.0.1',
    httpPort: port,
    onTrace: (raw: unknown) => {
      for (const { resource, scopeSpans } of normalizeTrace(raw).resourceSpans) {
        resources.push(resource.attributes)
        spans.push(...scopeSpans.flatMap((scope) => scope.spans))
      }
    },
  })
  await server.start()
  t.after(() => server.close())
  return { url: server.httpUrl.href, spans, resources }
}

// When there are spans at all, and what the log says of their export. What they hold is in test/flow/tracing.test.ts.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { trace } from '@opentelemetry/api'
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import { createLogger } from '../../../src/runtime/log.ts'
import { OtlpExport } from '../../../src/runtime/otlp-export.ts'
import { registeredTracing, Tracing } from '../../../src/runtime/tracing.ts'

process.env.OTEL_EXPORTER_OTLP_TIMEOUT = '250000'
const INDEXED = { indexed: 1, cursor: 1 }

test('there is nothing to do for traces, unless the operator has loaded an SDK: then it gets the spans', (t) => {
  assert.equal(registeredTracing(), null)
  const exporter = new InMemorySpanExporter()
  trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] }))
  t.after(() => trace.disable())
  registeredTracing()!.indexed(performance.now(), INDEXED)
  assert.deepEqual(
    exporter.getFinishedSpans().map(({ name }) => name),
    ['index'],
  )
})

test('a step of the indexer that found nothing is no span', () => {
  const exporter = new InMemorySpanExporter()
  const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] })
  new Tracing(provider).indexed(performance.now(), { indexed: 0, cursor: 1 })
  assert.equal(exporter.getFinishedSpans().length, 0)
})

test('the log says when exports begin to fail, not each time, and when they work again', async (t) => {
  const statuses = [400, 400, 200, 200]
  const paths = new Set<string | undefined>()
  const collector = http.createServer((req, res) => {
    paths.add(req.url)
    req.resume().on('end', () => res.writeHead(statuses.shift() ?? 200).end())
  })
  await once(collector.listen(0, '127.0.0.1'), 'listening')
  t.after(() => collector.close().closeAllConnections())
  const said: string[] = []
  const logger = createLogger('info', (line) => said.push((JSON.parse(line) as { msg: string }).msg))
  const { port } = collector.address() as AddressInfo
  for (const endpoint of [`http://127.0.0.1:${port}`, `http://127.0.0.1:${port}/v1/traces`]) {
    const traces = await OtlpExport.create({ endpoint, share: 100, version: '1', logger })
    t.after(() => traces.stop())
    const tracing = new Tracing(traces.provider)
    for (let batch = 0; batch < 4; batch++) {
      tracing.indexed(performance.now(), INDEXED)
      await (traces.provider as TracerProvider).forceFlush({ timeoutMillis: 250_000 }).catch(() => {})
    }
  }
  assert.deepEqual(said, ['traces cannot be exported: their spans are dropped', 'traces are exported again'])
  assert.deepEqual([...paths], ['/v1/traces'])
})

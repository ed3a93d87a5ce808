// When there are spans at all. What they hold is in test/flow/tracing.test.ts.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { trace } from '@opentelemetry/api'
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import { registeredTracing, Tracing } from '../../../src/runtime/tracing.ts'

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

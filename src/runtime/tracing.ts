// Traces: the spans of requests, commits, index steps and claims. They are written by hand, here and nowhere else: five kinds of
// steps that an operator knows, where instrumentation of every library would show none of our commits and all of our SQL.
//
//   POST /v1/inbox/events     a request, inside of the sender's trace if it sent a traceparent
//   └── commit                from the append of its batch until it was on disk; what lies before it is waiting
//   POST /v1/inbox/claims
//   └── claim                 linked to the traces of the events that it handed out
//   index                     a step of the indexer, a trace of its own
//   push                      one request to an endpoint, inside of the trace of its event
//
// A span has nothing that a sender wrote: no path, no query, no header, no body, no reference.

import {
  isSpanContextValid,
  type Link,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Tracer,
  type TracerProvider,
} from '@opentelemetry/api'

export interface EndedRequest {
  readonly method: string
  /** The path of the route table; null for an unknown path. */
  readonly route: string | null
  /** Null if the client left before an answer. */
  readonly status: number | null
  readonly error: string | null
  readonly outcome: string | null
  readonly eventId: number | null
}

export interface HandedOut {
  readonly event: { readonly id: number; readonly traceparent: string | null }
}

/** A request to an endpoint. */
export interface PushSpan {
  /** The header that continues the trace; null if it is not traced. */
  readonly traceparent: string | null
  /** `outcome`: the status, or why there is none. */
  end(outcome: number | string): void
}

/** Times are those of performance.now(): one that the SDK took itself would have milliseconds only. */
export class Tracing {
  readonly #tracer: Tracer
  /** The requests in progress that are traced, by their ids. */
  readonly #requests = new Map<string, Span>()

  constructor(provider: TracerProvider) {
    this.#tracer = provider.getTracer('intray')
  }

  /** The id of the trace; null if the request is not traced. */
  requestBegan(requestId: string, startTime: number, traceparent: unknown): string | null {
    const span = this.#tracer.startSpan('HTTP', { kind: SpanKind.SERVER, startTime }, parentOf(traceparent))
    if (!span.isRecording()) return null
    this.#requests.set(requestId, span)
    return span.spanContext().traceId
  }

  requestEnded(requestId: string, { method, route, status, error, outcome, eventId }: EndedRequest): void {
    const span = this.#requests.get(requestId)
    if (span === undefined) return
    this.#requests.delete(requestId)
    span.updateName(route === null ? method : `${method} ${route}`)
    span.setAttribute('http.request.method', method).setAttribute('intray.request_id', requestId)
    if (route !== null) span.setAttribute('http.route', route)
    if (status !== null) span.setAttribute('http.response.status_code', status)
    if (outcome !== null) span.setAttribute('intray.outcome', outcome)
    if (eventId !== null) span.setAttribute('intray.event_id', eventId)
    const problem = error ?? (status === null ? 'client_gone' : null)
    if (problem !== null) span.setAttribute('error.type', problem)
    if (status !== null && status >= 500) span.setStatus({ code: SpanStatusCode.ERROR })
    span.end(performance.now())
  }

  /** One span for each message that came in with a traced request. */
  committed(items: readonly { readonly requestId: string }[], startTime: number, failure: unknown): void {
    if (this.#requests.size === 0) return
    for (const { requestId } of items) {
      const span = this.#child(requestId, 'commit', startTime)
      if (span === null) continue
      span.setAttribute('messaging.batch.message_count', items.length)
      if (failure !== null) span.setStatus({ code: SpanStatusCode.ERROR })
      span.end(performance.now())
    }
  }

  claimed(requestId: string, startTime: number, events: readonly HandedOut[]): void {
    const span = this.#child(requestId, 'claim', startTime, events.flatMap(linkOf))
    span?.setAttribute('messaging.batch.message_count', events.length).end(performance.now())
  }

  indexed(startTime: number, { indexed, cursor }: { readonly indexed: number; readonly cursor: number }): void {
    if (indexed === 0) return
    const attributes = { 'messaging.batch.message_count': indexed, 'intray.index.cursor': cursor }
    this.#tracer.startSpan('index', { startTime, attributes }, ROOT_CONTEXT).end(performance.now())
  }

  pushBegan({ id, traceparent }: HandedOut['event']): PushSpan {
    const attributes = { 'intray.event_id': id, 'http.request.method': 'POST' }
    const options = { kind: SpanKind.CLIENT, startTime: performance.now(), attributes }
    const span = this.#tracer.startSpan('push', options, parentOf(traceparent))
    const { traceId, spanId, traceFlags } = span.spanContext()
    const flags = traceFlags.toString(16).padStart(2, '0')
    return {
      traceparent: isSpanContextValid(span.spanContext()) ? `00-${traceId}-${spanId}-${flags}` : null,
      end: (outcome) => {
        if (typeof outcome === 'number') span.setAttribute('http.response.status_code', outcome)
        if (typeof outcome === 'string' || outcome >= 300) {
          span.setAttribute('error.type', String(outcome)).setStatus({ code: SpanStatusCode.ERROR })
        }
        span.end(performance.now())
      },
    }
  }

  #child(requestId: string, name: string, startTime: number, links: Link[] = []): Span | null {
    const parent = this.#requests.get(requestId)
    if (parent === undefined) return null
    return this.#tracer.startSpan(name, { startTime, links }, trace.setSpan(ROOT_CONTEXT, parent))
  }
}

/** Null if nobody set up the export of spans: then the service does nothing for traces. */
export function registeredTracing(): Tracing | null {
  const provider = trace.getTracerProvider() as TracerProvider & { getDelegateTracer?: (name: string) => unknown }
  const isProxyOfNone = provider.getDelegateTracer !== undefined && provider.getDelegateTracer('intray') === undefined
  return isProxyOfNone ? null : new Tracing(provider)
}

function parentOf(traceparent: unknown) {
  const parent = spanContextOf(traceparent)
  return parent === null ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parent)
}

function linkOf({ event }: HandedOut): Link[] {
  const context = spanContextOf(event.traceparent)
  return context === null ? [] : [{ context, attributes: { 'intray.event_id': event.id } }]
}

const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/

function spanContextOf(traceparent: unknown): SpanContext | null {
  const match = typeof traceparent === 'string' ? TRACEPARENT.exec(traceparent) : null
  if (match === null) return null
  const traceFlags = Number.parseInt(match[3]!, 16) & TraceFlags.SAMPLED
  const context = { traceId: match[1]!, spanId: match[2]!, traceFlags, isRemote: true }
  return isSpanContextValid(context) ? context : null
}

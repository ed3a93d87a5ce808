// Exports spans to an OpenTelemetry collector, in batches and in the background, with OpenTelemetry's own SDK. The SDK is loaded only
// here: a service without a collector neither needs nor loads it.

import { setTimeout } from 'node:timers/promises'
import type { TracerProvider } from '@opentelemetry/api'
import type { SpanExporter } from '@opentelemetry/sdk-trace'
import { errorText, type Logger } from './log.ts'
import type { Service } from './service.ts'

/** A stop waits this long for the last batch. The exporter has a time-out of its own for each: OTEL_EXPORTER_OTLP_TIMEOUT, 10 s. */
const STOP_TIMEOUT_MS = 3000
/** The SDK's time-out around the exporter's: never the shorter one. */
const NO_SECOND_TIMEOUT_MS = 3_600_000

/** The packages of the SDK are not installed. */
export class SdkMissing extends Error {
  constructor() {
    super(
      'INTRAY_OTLP_ENDPOINT needs packages that npm did not install, since they are optional. Run npm ci in the folder of Intray, or remove the setting.',
    )
    this.name = 'SdkMissing'
  }
}

export interface OtlpExportOptions {
  /** The collector's URL, with or without /v1/traces. */
  readonly endpoint: string
  /** Percent of the traces that begin here. A trace that began elsewhere goes on as it began. */
  readonly share: number
  readonly version: string
  readonly logger: Logger
}

export class OtlpExport implements Service {
  readonly provider: TracerProvider
  readonly #shutdown: () => Promise<void>

  private constructor(provider: TracerProvider, shutdown: () => Promise<void>) {
    this.provider = provider
    this.#shutdown = shutdown
  }

  /** Throws SdkMissing. */
  static async create({ endpoint, share, version, logger }: OtlpExportOptions): Promise<OtlpExport> {
    const { sdk, otlp, resources } = await loadSdk()
    const url = endpoint.endsWith('/v1/traces') ? endpoint : `${endpoint}/v1/traces`
    const exporter = new otlp.OTLPTraceExporter({ url })
    const service = resources.resourceFromAttributes({ 'service.name': 'intray', 'service.version': version })
    // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES.
    const { envDetector, serviceInstanceIdDetector } = resources
    const named = resources.detectResources({ detectors: [serviceInstanceIdDetector, envDetector] })
    const provider = new sdk.TracerProvider({
      resource: resources.defaultResource().merge(service).merge(named),
      sampler: new sdk.ParentBasedSampler({ root: new sdk.TraceIdRatioBasedSampler(share / 100) }),
      spanProcessors: [
        new sdk.BatchSpanProcessor({ exporter: loud(exporter, logger), exportTimeoutMillis: NO_SECOND_TIMEOUT_MS }),
      ],
    })
    return new OtlpExport(provider, () => provider.shutdown())
  }

  start(): void {}

  /** Exports what is left. A collector that is gone is no reason to fail. */
  async stop(): Promise<void> {
    const limit = new AbortController()
    const waited = setTimeout(STOP_TIMEOUT_MS, undefined, { signal: limit.signal }).catch(() => {})
    await Promise.race([this.#shutdown().catch(() => {}), waited])
    limit.abort()
  }
}

/** Throws SdkMissing. */
export async function loadSdk() {
  try {
    const [sdk, otlp, resources] = await Promise.all([
      import('@opentelemetry/sdk-trace'),
      import('@opentelemetry/exporter-trace-otlp-proto'),
      import('@opentelemetry/resources'),
    ])
    return { sdk, otlp, resources }
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND' ? new SdkMissing() : error
  }
}

/** Logs when exports begin to fail, and when they work again. */
function loud(exporter: SpanExporter, logger: Logger): SpanExporter {
  let isFailing = false
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        const fails = result.code !== 0
        if (fails && !isFailing)
          logger.warn('traces cannot be exported: their spans are dropped', { error: errorText(result.error) })
        if (!fails && isFailing) logger.info('traces are exported again')
        isFailing = fails
        done(result)
      }),
    shutdown: () => exporter.shutdown(),
    ...(exporter.forceFlush ? { forceFlush: () => exporter.forceFlush!() } : {}),
  }
}

// Messages between the bench and its load generator.

export interface LoadJob {
  readonly port: number
  readonly token: string
  readonly connections: number
  /** The measuring interval; with `count`, the longest it may take. */
  readonly seconds: number
  /** Ends after this many good answers instead of after `seconds`. */
  readonly count: number | null
  /** Requests a second, evenly spaced; without it, as many as the server takes. */
  readonly rate?: number
}

export interface LoadReport {
  /** Good answers inside the interval; `late` ones arrived after its end, for requests sent within it. */
  readonly answers: number
  readonly late: number
  readonly seconds: number
  readonly rate: number
  readonly perSecond: readonly number[]
  readonly p50Ms: number
  readonly p99Ms: number
  readonly maxMs: number
  readonly errorCount: number
  readonly errors: Readonly<Record<string, number>>
  readonly errorSample: string | null
  readonly cpuSeconds: number
}

export type LoadMessage =
  | { readonly type: 'progress'; readonly done: number }
  | { readonly type: 'report'; readonly report: LoadReport }
  | { readonly type: 'failed'; readonly message: string }

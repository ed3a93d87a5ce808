// Counters, histograms and gauges in Prometheus' text format. Gauges, and counters kept elsewhere, are read when metrics are
// scraped. Label values come from our own tables only: no tenant, token or text from outside becomes one.

type Labels = Readonly<Record<string, string>>
type Reading = number | null
type LabelNames = readonly [] | readonly [string] | readonly [string, string]
type LabelValues = readonly [first?: string, second?: string]

interface Family {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  samples(): string[] | Promise<string[]>
}

export class Counter {
  readonly #name: string
  readonly #labels: LabelNames
  /** By the values of the two labels. Nested, because joining the values takes longer than counting. */
  readonly #counts = new Map<string, Map<string, number>>()

  /** Known label values are there from the start: a rate over a sample that begins with 1 would miss the first occurrence. */
  constructor(name: string, labels: LabelNames, known: readonly LabelValues[] = labels.length === 0 ? [[]] : []) {
    this.#name = name
    this.#labels = labels
    for (const [first, second] of known) this.#add(0, first, second)
  }

  add(first?: string, second?: string, count = 1): void {
    this.#add(count, first, second)
  }

  #add(count: number, first = '', second = ''): void {
    let counts = this.#counts.get(first)
    if (counts === undefined) {
      counts = new Map()
      this.#counts.set(first, counts)
    }
    counts.set(second, (counts.get(second) ?? 0) + count)
  }

  samples(): string[] {
    return [...this.#counts].flatMap(([first, counts]) =>
      [...counts].map(([second, count]) => `${this.#name}${labelled(this.#labels, [first, second])} ${count}`),
    )
  }
}

export class Histogram {
  readonly #name: string
  readonly #bounds: readonly number[]
  readonly #counts: number[]
  #sum = 0

  constructor(name: string, bounds: readonly number[]) {
    this.#name = name
    this.#bounds = bounds
    this.#counts = Array.from({ length: bounds.length + 1 }, () => 0)
  }

  observe(value: number): void {
    const bounds = this.#bounds
    let at = 0
    while (at < bounds.length && value > bounds[at]!) at++
    this.#counts[at]! += 1
    this.#sum += value
  }

  samples(): string[] {
    let below = 0
    const buckets = this.#counts.map((count, n) => {
      below += count
      return `${this.#name}_bucket{le="${this.#bounds[n] ?? '+Inf'}"} ${below}`
    })
    return [...buckets, `${this.#name}_sum ${this.#sum}`, `${this.#name}_count ${below}`]
  }
}

export class Metrics {
  readonly #families: Family[] = []

  counter(name: string, help: string, labels: LabelNames = [], known?: readonly LabelValues[]): Counter {
    const counter = new Counter(name, labels, known)
    this.#families.push({ name, help, type: 'counter', samples: () => counter.samples() })
    return counter
  }

  histogram(name: string, help: string, bounds: readonly number[]): Histogram {
    const histogram = new Histogram(name, bounds)
    this.#families.push({ name, help, type: 'histogram', samples: () => histogram.samples() })
    return histogram
  }

  /** Read at every scrape; left out if it is null or fails. */
  gauge(name: string, help: string, read: () => Reading | Promise<Reading>, labels: Labels = {}): void {
    this.#read('gauge', name, help, read, labels)
  }

  /** A count that something else keeps: read like a gauge. */
  keptCounter(name: string, help: string, read: () => Reading | Promise<Reading>): void {
    this.#read('counter', name, help, read, {})
  }

  #read(
    type: Family['type'],
    name: string,
    help: string,
    read: () => Reading | Promise<Reading>,
    labels: Labels,
  ): void {
    const shown = labelled(Object.keys(labels), Object.values(labels))
    const samples = async () => {
      const value = await read()
      return value === null ? [] : [`${name}${shown} ${value}`]
    }
    this.#families.push({ name, help, type, samples })
  }

  async render(): Promise<string> {
    const texts = await Promise.all(
      this.#families.map(async ({ name, help, type, samples }) => {
        const lines = await Promise.try(samples).catch((): string[] => [])
        return lines.length === 0 ? '' : `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('\n')}\n`
      }),
    )
    return texts.join('')
  }
}

function labelled(names: readonly string[], values: readonly string[]): string {
  if (names.length === 0) return ''
  return `{${names.map((name, n) => `${name}="${escaped(values[n] ?? '')}"`).join(',')}}`
}

function escaped(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}

/** Caches an asynchronous read that several gauges share. A failure is not cached. */
export function cached<T>(forMs: number, read: () => Promise<T>): () => Promise<T> {
  let last: Promise<T> | null = null
  let readAt = 0
  return () => {
    const now = performance.now()
    if (last !== null && now - readAt < forMs) return last
    const reading = read()
    last = reading
    readAt = now
    reading.catch(() => {
      if (last === reading) last = null
    })
    return reading
  }
}

// Did the faults fall on group commit? Counted on both sides: the requests that had no answer when a fault struck, and the
// messages in each append, as the service counts them itself.
// Promises: reports "not struck" for a proof whose faults all fell on few messages, or whose service appended only few at once.

import { setImmediate, setTimeout } from 'node:timers/promises'
import type { Load } from './load.ts'
import type { Random } from './random.ts'

/** More than so many messages are a group. A few may be stored in another way than many. */
export const FEW = 8
/** Enough that the requests of one turn of the service's event loop are more than a few. */
export const GROUP_CONNECTIONS = 64

/** A strike falls up to so long after enough requests are in flight: before, in or after their commit. */
const MOST_DELAY_MS = 5
/** A load that has never so many in flight is struck all the same, and the report says so. */
const LIMIT_MS = 30_000

/** Appends of a service, and how many of them held more than a few messages. */
export interface AppendCounts {
  readonly appends: number
  readonly large: number
  readonly messages: number
}

export class Strikes {
  readonly #what: string
  readonly #inFlight: number[] = []
  #appends: AppendCounts | null = null

  /** `what`: a kill, a cut, … */
  constructor(what: string) {
    this.#what = what
  }

  /** A fault was injected while so many requests had no answer. */
  struck(inFlight: number): void {
    this.#inFlight.push(inFlight)
  }

  appended(counts: AppendCounts): void {
    const { appends, large, messages } = this.#appends ?? { appends: 0, large: 0, messages: 0 }
    this.#appends = {
      appends: appends + counts.appends,
      large: large + counts.large,
      messages: messages + counts.messages,
    }
  }

  notes(): string[] {
    if (this.#inFlight.length === 0) return []
    const sorted = this.#inFlight.toSorted((a, b) => a - b)
    const [least, median, most] = [sorted[0], sorted[sorted.length >> 1], sorted.at(-1)]
    const onGroups = sorted.filter((inFlight) => inFlight > FEW).length
    const strikes = `${least} to ${most} messages in flight at ${this.#what}, median ${median}; more than ${FEW} at ${onGroups} of ${sorted.length}.`
    if (!this.#appends) return [strikes]
    const { appends, large, messages } = this.#appends
    const mean = appends === 0 ? 0 : messages / appends
    return [strikes, `${appends} appends of ${mean.toFixed(1)} messages on average; ${large} held more than ${FEW}.`]
  }

  problems(): string[] {
    return [
      ...(this.#inFlight.some((inFlight) => inFlight > FEW)
        ? []
        : [`not struck: ${this.#what} never fell on more than ${FEW} messages in flight`]),
      ...(this.#appends?.large === 0 ? [`not struck: no append held more than ${FEW} messages`] : []),
    ]
  }
}

/** Resolves in a moment when more than `few` requests have no answer. */
export async function untilGroupInFlight(load: Pick<Load, 'inFlight'>, random: Random, few = FEW): Promise<void> {
  const giveUpAt = performance.now() + LIMIT_MS
  while (performance.now() < giveUpAt) {
    while (load.inFlight <= few && performance.now() < giveUpAt) await setImmediate()
    const strikeAt = performance.now() + (random.below(1000) / 1000) * MOST_DELAY_MS
    while (performance.now() < strikeAt) await setImmediate()
    if (load.inFlight > few) return
  }
}

/** Sends in groups: as many messages at once as there are connections, and the next when all have their answer. */
export async function sendInGroups(load: Load, isOver: () => boolean, pauseMs = 0): Promise<void> {
  while (!isOver()) {
    await load.run(GROUP_CONNECTIONS)
    if (pauseMs > 0) await setTimeout(pauseMs)
  }
}

/** From the text of /metrics. */
export function readAppends(text: string): AppendCounts {
  const figure = (name: string): number => {
    const line = text.split('\n').find((one) => one.startsWith(`${name} `))
    if (line === undefined) throw new Error(`the service does not tell ${name}`)
    return Number(line.slice(name.length + 1))
  }
  const appends = figure('intray_append_events_count')
  const few = figure(`intray_append_events_bucket{le="${FEW}"}`)
  return { appends, large: appends - few, messages: figure('intray_append_events_sum') }
}

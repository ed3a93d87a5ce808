// Load at a pace: so many messages a second whatever is answered (open loop), or as fast as so many connections get answers
// (closed loop). Latency is counted from when a message was due, so that a client that cannot keep up hides nothing.
// Promises: a message counts as good only if it was acknowledged within the patience of its sender. Rates are of answers that came
// in the window, from a fifth after the beginning to the end: neither a queue that fills nor one that empties counts as work done.

import { Histogram } from '../bench/load/histogram.ts'
import { Wire, type WireAnswer } from './wire.ts'

export interface PaceOptions {
  readonly port: number
  readonly token: string
  readonly seconds: number
  /** What comes later is late: its sender has given up. */
  readonly patienceMs: number
  /** Connections that are there before the first message; 500 unless told. One that is never used is cut off like a slow one. */
  readonly readyConnections?: number
}

export interface Figures {
  readonly seconds: number
  /** Messages that were due. */
  readonly offered: number
  readonly sent: number
  /** Acknowledged, in time or not. */
  readonly acknowledged: number
  readonly good: number
  /** 503 with Retry-After, and sure not to be stored. */
  readonly refused: number
  /** Any other answer. */
  readonly other: number
  readonly unanswered: number
  readonly goodPerSecond: number
  readonly offeredPerSecond: number
  /** Of what was acknowledged. */
  readonly p50Ms: number
  readonly p99Ms: number
}

class Tally {
  readonly latencies = new Histogram()
  readonly #patienceMs: number
  readonly #from: number
  readonly #to: number
  #goodInWindow = 0
  offered = 0
  sent = 0
  acknowledged = 0
  good = 0
  refused = 0
  other = 0
  unanswered = 0

  constructor({ patienceMs, seconds }: PaceOptions) {
    this.#patienceMs = patienceMs
    this.#to = performance.now() + seconds * 1000
    this.#from = this.#to - seconds * 1000 * WINDOW
  }

  note({ status, hasRetryAfter, isSureNotStored }: WireAnswer, dueAt: number): void {
    const now = performance.now()
    const tookMs = now - dueAt
    if (status === 200) {
      this.acknowledged += 1
      this.latencies.record(tookMs)
      if (tookMs > this.#patienceMs) return
      this.good += 1
      if (now >= this.#from && now <= this.#to) this.#goodInWindow += 1
    } else if (status === 503 && hasRetryAfter && isSureNotStored) this.refused += 1
    else if (status === 0) this.unanswered += 1
    else this.other += 1
  }

  figures(seconds: number): Figures {
    const { offered, sent, acknowledged, good, refused, other, unanswered } = this
    return {
      ...{ seconds, offered, sent, acknowledged, good, refused, other, unanswered },
      goodPerSecond: this.#goodInWindow / (seconds * WINDOW),
      offeredPerSecond: offered / seconds,
      p50Ms: this.latencies.percentileMs(0.5),
      p99Ms: this.latencies.percentileMs(0.99),
    }
  }
}

const WINDOW = 0.8
const DRAIN_MS = 20_000
const TICK_MS = 2
const READY_CONNECTIONS = 500
const OPENED_AT_ONCE = 50

/** Each connection sends again as soon as it is answered; one that was refused waits for a moment, as a polite client does. */
export async function closedLoop(options: PaceOptions, connections: number, pauseMs = 0): Promise<Figures> {
  const { port, token, seconds } = options
  const wires = Array.from({ length: connections }, () => new Wire(port, token, () => {}))
  await Promise.all(wires.map((wire) => wire.opened))
  const tally = new Tally(options)
  const end = performance.now() + seconds * 1000
  await Promise.all(
    wires.map(async (wire) => {
      while (performance.now() < end && wire.isOpen) {
        const dueAt = performance.now()
        tally.offered += 1
        tally.sent += 1
        const answer = await new Promise<WireAnswer>((resolve) => wire.send(resolve))
        tally.note(answer, dueAt)
        if (answer.status !== 200 && pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs))
      }
    }),
  )
  for (const wire of wires) wire.close()
  return tally.figures(seconds)
}

/** Messages come when they are due, each on a connection that is free, or a new one up to `maxConnections`. */
export async function openLoop(options: PaceOptions, perSecond: number, maxConnections: number): Promise<Figures> {
  const { port, token, seconds, readyConnections = READY_CONNECTIONS } = options
  const free: Wire[] = []
  const all = new Set<Wire>()
  const open = (): Wire => {
    const wire = new Wire(port, token, () => all.delete(wire))
    all.add(wire)
    return wire
  }
  // Senders keep their connections; what is measured is not how fast they can be made.
  for (let left = Math.min(maxConnections, readyConnections); left > 0; left -= OPENED_AT_ONCE) {
    const some = Array.from({ length: Math.min(left, OPENED_AT_ONCE) }, open)
    await Promise.all(some.map((wire) => wire.opened))
    free.push(...some)
  }
  const tally = new Tally(options)
  let inFlight = 0
  const sendOne = (dueAt: number) => {
    tally.offered += 1
    let wire = free.pop()
    while (wire && !wire.isOpen) wire = free.pop()
    if (!wire) {
      if (all.size >= maxConnections) return
      wire = open()
    }
    const used = wire
    tally.sent += 1
    inFlight += 1
    used.send((answer) => {
      inFlight -= 1
      tally.note(answer, dueAt)
      if (used.isOpen) free.push(used)
    })
  }
  const startedAt = performance.now()
  const total = Math.round(perSecond * seconds)
  while (tally.offered < total) {
    const due = Math.min(total, Math.floor(((performance.now() - startedAt) / 1000) * perSecond))
    while (tally.offered < due) sendOne(startedAt + (tally.offered / perSecond) * 1000)
    await new Promise((resolve) => setTimeout(resolve, TICK_MS))
  }
  const deadline = performance.now() + DRAIN_MS
  while (inFlight > 0 && performance.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 20))
  tally.unanswered += inFlight
  for (const wire of all) wire.close()
  return tally.figures(seconds)
}

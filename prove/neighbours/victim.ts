// A tenant that uses the service as intended: it sends messages, reads its inbox and claims its messages.
// Promises: requests are made when they are due, whatever was answered before, and latency counts from then. One that is not
// answered within the patience counts as unanswered, however it ends.

import { randomBytes } from 'node:crypto'
import { bearer, requestBytes, Wire } from './wire.ts'

export const PATIENCE_MS = 5000
const SEND_EVERY_MS = 50
const READ_EVERY_MS = 100
const SEND_LARGE_EVERY_MS = 250
const LARGE_BYTES = 900_000
const TICK_MS = 5
/** One request in four opens a new connection. */
const NEW_CONNECTION_EVERY = 4
const CLAIM_WAIT_S = 1

export const ACTIVITIES = ['send', 'read', 'claimable', 'large'] as const
export type Activity = (typeof ACTIVITIES)[number]

export interface Figures {
  readonly due: number
  readonly answered: number
  /** Answered with anything but 200. */
  readonly refused: number
  readonly unanswered: number
  /** Of what was answered 200; NaN if nothing was. */
  readonly p50Ms: number
  readonly worstMs: number
}

export type VictimFigures = Readonly<Partial<Record<Activity, Figures>>>

export interface VictimOptions {
  readonly port: number
  readonly senderToken: string
  readonly processorToken: string
  readonly hasLarge: boolean
  readonly patienceMs: number
}

interface Planned {
  readonly activity: Activity
  readonly everyMs: number
  ask(dueAt: number): void
}

class Tally {
  readonly #latencies: number[] = []
  readonly #patienceMs: number
  #due = 0
  #refused = 0
  #unanswered = 0

  constructor(patienceMs: number) {
    this.#patienceMs = patienceMs
  }

  due(): void {
    this.#due += 1
  }

  note(status: number, tookMs: number): void {
    if (status === 0 || tookMs > this.#patienceMs) this.#unanswered += 1
    else if (status === 200) this.#latencies.push(tookMs)
    else this.#refused += 1
  }

  figures(): Figures {
    const sorted = this.#latencies.toSorted((a, b) => a - b)
    const answered = sorted.length
    return {
      due: this.#due,
      answered,
      refused: this.#refused,
      unanswered: this.#unanswered + (this.#due - answered - this.#refused - this.#unanswered),
      p50Ms: sorted[Math.floor(answered / 2)] ?? Number.NaN,
      worstMs: sorted.at(-1) ?? Number.NaN,
    }
  }
}

export class Victim {
  readonly #options: VictimOptions
  readonly #free: Wire[] = []
  readonly #all = new Set<Wire>()
  #tallies: Partial<Record<Activity, Tally>> = {}
  /** When the messages that are not claimed yet were due, by their reference. */
  readonly #unclaimed = new Map<string, { dueAt: number; tally: Tally }>()
  #isOver = false
  #inFlight = 0

  constructor(options: VictimOptions) {
    this.#options = options
    void this.#claim()
  }

  /** Works for so long, then waits for open requests and unclaimed messages within the patience. */
  async work(seconds: number): Promise<VictimFigures> {
    const plan: Planned[] = [
      { activity: 'send', everyMs: SEND_EVERY_MS, ask: (dueAt) => this.#send(dueAt) },
      { activity: 'read', everyMs: READ_EVERY_MS, ask: (dueAt) => this.#read(dueAt) },
    ]
    if (this.#options.hasLarge)
      plan.push({ activity: 'large', everyMs: SEND_LARGE_EVERY_MS, ask: (dueAt) => this.#sendLarge(dueAt) })
    const activities = [...plan.map(({ activity }) => activity), 'claimable']
    this.#tallies = Object.fromEntries(activities.map((activity) => [activity, new Tally(this.#options.patienceMs)]))
    const from = performance.now()
    const next = plan.map(({ everyMs }) => everyMs)
    for (let now = 0; now < seconds * 1000; now = performance.now() - from) {
      plan.forEach(({ activity, everyMs, ask }, n) => {
        for (; next[n]! <= now; next[n]! += everyMs) {
          this.#tallies[activity]!.due()
          ask(from + next[n]!)
        }
      })
      await new Promise((resolve) => setTimeout(resolve, TICK_MS))
    }
    const giveUpAt = performance.now() + this.#options.patienceMs
    while ((this.#inFlight > 0 || this.#unclaimed.size > 0) && performance.now() < giveUpAt) {
      await new Promise((resolve) => setTimeout(resolve, TICK_MS))
    }
    this.#unclaimed.clear()
    return Object.fromEntries(Object.entries(this.#tallies).map(([activity, tally]) => [activity, tally.figures()]))
  }

  close(): void {
    this.#isOver = true
    for (const wire of this.#all) wire.close()
  }

  #send(dueAt: number): void {
    const { senderToken } = this.#options
    const source = randomBytes(8).toString('hex')
    const { claimable } = this.#tallies
    const body = JSON.stringify({ source_ref: source, contact: { name: 'Ada' }, message: { text: 'Do you ship?' } })
    const request = requestBytes({ path: '/v1/inbox/events', body, headers: [bearer(senderToken)] })
    const tally = claimable!
    this.#unclaimed.set(source, { dueAt, tally })
    tally.due()
    void this.#ask('send', dueAt, request).then((status) => {
      // A message that was not stored cannot be claimed.
      if (status !== 200 && this.#unclaimed.delete(source)) tally.note(status === 0 ? 0 : 503, 0)
    })
  }

  #sendLarge(dueAt: number): void {
    const body = `{"text":"${randomBytes(8).toString('hex').padEnd(LARGE_BYTES, 'x')}"}`
    void this.#ask(
      'large',
      dueAt,
      requestBytes({ path: '/v1/inbox/events', body, headers: [bearer(this.#options.senderToken)] }),
    )
  }

  #read(dueAt: number): void {
    const headers = [bearer(this.#options.processorToken)]
    void this.#ask('read', dueAt, requestBytes({ path: '/v1/inbox/events?limit=20', headers }))
  }

  async #ask(activity: Activity, dueAt: number, request: Buffer): Promise<number> {
    const tally = this.#tallies[activity]!
    this.#inFlight += 1
    const isNew = Math.random() < 1 / NEW_CONNECTION_EVERY
    let wire = isNew ? undefined : this.#free.pop()
    while (wire && !wire.isOpen) wire = this.#free.pop()
    const used = wire ?? this.#open()
    const late = setTimeout(() => used.close(), Math.max(0, this.#options.patienceMs - (performance.now() - dueAt)) + 1)
    const { status } = await used.ask(request)
    clearTimeout(late)
    tally.note(status, performance.now() - dueAt)
    this.#inFlight -= 1
    if (isNew) used.close()
    else if (used.isOpen) this.#free.push(used)
    return status
  }

  #open(): Wire {
    const wire = new Wire({ port: this.#options.port })
    this.#all.add(wire)
    void wire.closed.then(() => this.#all.delete(wire))
    return wire
  }

  async #claim(): Promise<void> {
    const body = JSON.stringify({ limit: 200, lease_s: 3600, wait_s: CLAIM_WAIT_S })
    const headers = [bearer(this.#options.processorToken)]
    const request = requestBytes({ path: '/v1/inbox/claims', body, headers })
    let wire = this.#open()
    while (!this.#isOver) {
      const { status, body: answer } = await wire.ask(request, true)
      const now = performance.now()
      for (const [, source] of (answer ?? '').matchAll(/"source_ref":"([0-9a-f]{16})"/g)) {
        const sent = this.#unclaimed.get(source!)
        if (!sent) continue
        this.#unclaimed.delete(source!)
        sent.tally.note(200, now - sent.dueAt)
      }
      if (status !== 200) await new Promise((resolve) => setTimeout(resolve, TICK_MS))
      if (!wire.isOpen) wire = this.#open()
    }
  }
}

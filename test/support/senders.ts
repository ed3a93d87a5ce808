// Senders as integrations are: each message is sent again, to whichever node answers, until it is acknowledged. They go on
// through kills, stops and failovers until they are told to stop, and the ledger keeps what they were told.

import http from 'node:http'
import { type Ledger, type Message, post } from './load.ts'
import { until } from './until.ts'

export interface SendersOptions {
  /**
   * The ports of the nodes; a sender begins with one and goes on to the next when that does not acknowledge. Looked at
   * before each try: a test that starts a node again puts its new port here.
   */
  readonly ports: readonly number[]
  readonly token: string
  readonly ledger: Ledger
  /** Senders for each node, each with one request in flight. */
  readonly each: number
}

const PAUSE_MS = 20

export class Senders {
  readonly #options: SendersOptions
  readonly #agent = new http.Agent({ keepAlive: true })
  readonly #running: Promise<void>[]
  #inFlight = 0
  #stopped = false
  #abandoned = false

  constructor(options: SendersOptions) {
    this.#options = options
    const starts = options.ports.flatMap((_, at) => Array.from({ length: options.each }, () => at))
    this.#running = starts.map((at) => this.#run(at))
  }

  get inFlight(): number {
    return this.#inFlight
  }

  get acknowledged(): number {
    return this.#options.ledger.acknowledged.size
  }

  /** Resolves when so many more messages were acknowledged. */
  async more(count: number): Promise<void> {
    const wanted = this.acknowledged + count
    await until(`${count} more messages are acknowledged`, () => this.acknowledged >= wanted)
  }

  /** No further message; what is under way is sent until it is acknowledged. */
  async stop(): Promise<void> {
    this.#stopped = true
    await Promise.all(this.#running)
    this.#agent.destroy()
  }

  /** No further try: what is not acknowledged by now stays so. */
  async abandon(): Promise<void> {
    this.#stopped = true
    this.#abandoned = true
    await Promise.all(this.#running)
    this.#agent.destroy()
  }

  async #run(start: number): Promise<void> {
    const { ports } = this.#options
    let at = start
    while (!this.#stopped) {
      const message = this.#options.ledger.next()
      while (!(await this.#try(ports[at % ports.length]!, message)) && !this.#abandoned) {
        at += 1
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
      }
    }
  }

  async #try(port: number, { ref, payload }: Message): Promise<boolean> {
    const { ledger, token } = this.#options
    this.#inFlight += 1
    try {
      const answer = await post(port, token, payload, this.#agent)
      if (answer.status === 200 && typeof answer.json?.id === 'number') {
        ledger.acknowledged.set(ref, answer.json.id)
        return true
      }
      ledger.refused.push({ ref, answer })
    } catch (error) {
      ledger.failed.push({ ref, error: error as NodeJS.ErrnoException })
    } finally {
      this.#inFlight -= 1
    }
    return false
  }
}

// The client: senders on keep-alive connections, each with one request in flight, which write down what they are about to
// send before they send it and what they were answered before they go on.
// Promises: an answer counts as acknowledged only when it is 2xx with an id, whole; as refused only when it says that
// nothing was stored; everything else, no answer included, is unknown.

import http from 'node:http'
import type { AnswerLine, Journal, Outcome } from './journal.ts'
import { type Message, Messages, type Mix, USUAL } from './messages.ts'
import type { Random } from './random.ts'

/**
 * What a sender does when it was not told "stored": `end` its run (the service is gone), `go-on` with the next message,
 * `resend` the same until it is acknowledged, as integrations do.
 */
export type OnTrouble = 'end' | 'go-on' | 'resend'

export interface LoadOptions {
  readonly journal: Journal
  readonly random: Random
  readonly token: string
  readonly connections: number
  /** Looked at before each attempt, with the number of the sender: a restarted service has another port. */
  readonly port: (sender: number) => number
  readonly onTrouble: OnTrouble
  readonly mix?: Mix
  /** Begins every source_ref; two loads on one database need two. */
  readonly name?: string
  readonly maxTextPieces?: number
  readonly conversations?: number
  /** An answer that takes longer counts as none. */
  readonly timeoutMs?: number
  readonly onAcknowledged?: (count: number) => void
  readonly onAnswer?: (answer: AnswerLine, tookMs: number) => void
}

const PAUSE_MS = 20
const TIMEOUT_MS = 30_000

export class Load {
  readonly messages: Messages
  readonly #options: LoadOptions
  readonly #agent: http.Agent
  readonly #mix: Mix
  /** Sent, and neither acknowledged nor refused yet. */
  readonly #open = new Map<number, Message>()
  #attempts = 0
  #acknowledged = 0
  #inFlight = 0
  #answered = 0
  #isStopped = false
  #running: Promise<unknown> = Promise.resolve()

  constructor(options: LoadOptions) {
    this.#options = options
    this.#mix = options.mix ?? USUAL
    this.messages = new Messages(options.random, this.#mix, options)
    this.#agent = new http.Agent({ keepAlive: true, maxSockets: options.connections })
  }

  /** Requests that were handed to the kernel whole and have no answer yet. */
  get inFlight(): number {
    return this.#inFlight
  }

  /** Finished attempts, with any outcome. */
  get answered(): number {
    return this.#answered
  }

  get acknowledged(): number {
    return this.#acknowledged
  }

  /** Messages whose fate the client does not know. */
  get unknown(): number {
    return this.#open.size
  }

  /** Opens the connections and shows the token, so that messages sent together arrive and are stored together. */
  async connect(): Promise<void> {
    const open = (sender: number): Promise<void> =>
      new Promise((resolve, reject) => {
        const { token, port } = this.#options
        const headers = { Authorization: `Bearer ${token}` }
        const where = { host: '127.0.0.1', port: port(sender), path: '/api/ping', agent: this.#agent, headers }
        http.get(where, (res) => res.resume().on('end', resolve)).on('error', reject)
      })
    await Promise.all(Array.from({ length: this.#options.connections }, (_, sender) => open(sender)))
  }

  /** Starts the senders; resolves when all have ended, by trouble (`end`), by `stop` or with so many messages sent. */
  run(messages = Number.POSITIVE_INFINITY): Promise<void> {
    this.#isStopped = false
    const goal = this.messages.count + messages
    const senders = Array.from({ length: this.#options.connections }, (_, sender) => this.#send(sender, goal))
    const running = Promise.all(senders).then(() => {})
    this.#running = running
    return running
  }

  /** No further message; resolves when those under way have their answer. */
  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#running
  }

  /** Sends everything that is unknown again, the same bytes, until it is acknowledged. */
  async settle(deadlineMs = 60_000): Promise<void> {
    const deadline = Date.now() + deadlineMs
    const open = [...this.#open.values()]
    const settleNext = async (sender: number): Promise<void> => {
      for (let message = open.shift(); message; message = open.shift()) {
        while (this.#open.has(message.number) && (await this.#attempt(message, sender)) !== 'acknowledged') {
          if (Date.now() > deadline)
            throw new Error(`message ${message.number} is not acknowledged after ${deadlineMs} ms`)
          await pause()
        }
      }
    }
    await Promise.all(Array.from({ length: this.#options.connections }, (_, sender) => settleNext(sender)))
  }

  close(): void {
    this.#agent.destroy()
  }

  async #send(sender: number, goal: number): Promise<void> {
    const { onTrouble, random } = this.#options
    while (!this.#isStopped && this.messages.count < goal) {
      const message = this.messages.next()
      const outcome = await this.#sendOne(message, sender)
      if (outcome === 'unknown' && onTrouble === 'end') return
      if (outcome !== 'acknowledged') continue
      const canBeTold = message.ref !== null || message.key !== null
      if (canBeTold && random.percent(this.#mix.again)) await this.#sendOne(message, sender)
      if (message.ref !== null && random.percent(this.#mix.conflicting)) {
        await this.#sendOne(this.messages.conflicting(message), sender)
      }
    }
  }

  async #sendOne(message: Message, sender: number): Promise<Outcome> {
    let outcome = await this.#attempt(message, sender)
    while (outcome === 'unknown' && this.#options.onTrouble === 'resend' && !this.#isStopped) {
      await pause()
      outcome = await this.#attempt(message, sender)
    }
    return outcome
  }

  async #attempt(message: Message, sender: number): Promise<Outcome> {
    const { journal, onAnswer, onAcknowledged } = this.#options
    const attempt = ++this.#attempts
    const { number, ref, key, channel, conflictsWith, body } = message
    const isFirst = !this.#open.has(number)
    this.#open.set(number, message)
    await journal.write({
      type: 'intent',
      attempt,
      message: number,
      ref,
      key,
      channel,
      conflictsWith,
      ...(isFirst ? { body: body.toString('base64') } : {}),
    })
    const sentAt = performance.now()
    const answer = await this.#post(message, sender).catch((error: NodeJS.ErrnoException) => NO_ANSWER(error.code))
    this.#answered += 1
    const line: AnswerLine = { type: 'answer', attempt, ...answer }
    if (line.outcome !== 'unknown') this.#open.delete(number)
    onAnswer?.(line, performance.now() - sentAt)
    await journal.write(line)
    if (line.outcome === 'acknowledged') {
      this.#acknowledged += 1
      onAcknowledged?.(this.#acknowledged)
    }
    return line.outcome
  }

  #post({ body, key }: Message, sender: number): Promise<Told> {
    const { token, port, timeoutMs = TIMEOUT_MS } = this.#options
    let state: 'unsent' | 'in flight' | 'over' = 'unsent'
    const posted = new Promise<Told>((resolve, reject) => {
      const req = http.request({
        host: '127.0.0.1',
        port: port(sender),
        method: 'POST',
        path: '/v1/inbox/events',
        agent: this.#agent,
        timeout: timeoutMs,
        headers: {
          Authorization: `Bearer ${token}`,
          'Content-Type': 'application/json',
          'Content-Length': body.length,
          ...(key === null ? {} : { 'Idempotency-Key': key }),
        },
      })
      req.on('timeout', () => req.destroy(Object.assign(new Error('no answer in time'), { code: 'ETIMEDOUT' })))
      req.on('error', reject)
      req.on('finish', () => {
        if (state !== 'unsent') return
        state = 'in flight'
        this.#inFlight += 1
      })
      req.on('response', (res) => {
        let text = ''
        res.setEncoding('utf8')
        res.on('data', (chunk: string) => (text += chunk))
        res.on('error', reject)
        res.on('close', () => {
          if (res.complete) resolve(told(res.statusCode ?? 0, text))
          else reject(Object.assign(new Error('the answer was cut off'), { code: 'ECUT' }))
        })
      })
      req.end(body)
    })
    return posted.finally(() => {
      if (state === 'in flight') this.#inFlight -= 1
      state = 'over'
    })
  }
}

type Told = Omit<AnswerLine, 'type' | 'attempt'>

const NO_ANSWER = (code = 'no answer'): Told => ({
  outcome: 'unknown',
  status: 0,
  id: null,
  duplicate: false,
  error: code,
})

function told(status: number, text: string): Told {
  let json: Record<string, unknown> = {}
  try {
    json = JSON.parse(text) as Record<string, unknown>
  } catch {
    return { ...NO_ANSWER('not JSON'), status }
  }
  const id = typeof json.id === 'number' ? json.id : null
  const error = typeof json.error === 'string' ? json.error : null
  return { outcome: outcomeOf(status, id, json.stored), status, id, duplicate: json.duplicate === true, error }
}

/** 4xx: it was refused for what it is. 503 tells whether it was stored; 500 tells nothing. */
function outcomeOf(status: number, id: number | null, stored: unknown): Outcome {
  if (status >= 200 && status < 300 && id !== null) return 'acknowledged'
  if ((status >= 400 && status < 500) || (status === 503 && stored === 'no')) return 'refused'
  return 'unknown'
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
}

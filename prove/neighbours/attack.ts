// What an attack is, and what one has to attack with.

import { bearer, type Reply, type RequestParts, requestBytes, Wire } from './wire.ts'

export const ATTACKERS = ['stranger', 'sender', 'processor', 'operator'] as const
export type Attacker = (typeof ATTACKERS)[number]

export interface Attack {
  readonly name: string
  /** One line: what is sent. */
  readonly about: string
  readonly by: Attacker
  readonly connections: number
  /** The version that `--against` names must be found out by it. */
  readonly isControl?: true
  /** How long it goes on before its victim is measured; 0 if left out. */
  readonly leadSeconds?: number
  /** It takes what large messages need: the victim sends some as well. */
  readonly hasLargeVictim?: true
  /** Makes what is to be sent; returns what a connection then does until `arms.isOver`. */
  prepare(arms: Arms): (connection: number) => Promise<void>
}

/** Of the tenant that attacks; the database is full of its events. */
export interface Belongings {
  readonly port: number
  readonly senderToken: string
  readonly processorToken: string
  readonly cookie: string
  /** A conversation with a quarter of all events. */
  readonly conversationId: number
  /** An event of 900 kB. */
  readonly largeEventId: number
}

export interface Told {
  readonly sent: number
  /** How often each status was the answer. */
  readonly statuses: Readonly<Record<string, number>>
  /** Connections that the service ended. */
  readonly cut: number
}

export const ATTACKING_TENANT = { account: 8, company: 1 } as const
/** Limits for an address must not strike the victims, who come from another one. */
const ADDRESS = '127.0.0.2'
const COME_BACK_MS = 20

export class Arms {
  readonly belongings: Belongings
  readonly #by: Attacker
  isOver = false
  sent = 0
  cut = 0
  readonly #statuses: Record<string, number> = {}

  constructor(belongings: Belongings, by: Attacker) {
    this.belongings = belongings
    this.#by = by
  }

  get told(): Told {
    const { sent, cut } = this
    return { sent, cut, statuses: this.#statuses }
  }

  /** Sends one request and counts its answer. */
  async ask(wire: Wire, request: Uint8Array, isBodyWanted = false): Promise<Reply> {
    this.sent += 1
    const reply = await wire.ask(request, isBodyWanted)
    if (reply.status > 0) this.#statuses[reply.status] = (this.#statuses[reply.status] ?? 0) + 1
    return reply
  }

  /** A request with the credentials of the attacker. */
  request(parts: RequestParts): Buffer {
    return requestBytes({ ...parts, headers: [...this.#credentials(), ...(parts.headers ?? [])] })
  }

  async open(): Promise<Wire> {
    for (;;) {
      const wire = new Wire({ port: this.belongings.port, localAddress: ADDRESS })
      if ((await wire.opened) || this.isOver) return wire
      await pause(COME_BACK_MS)
    }
  }

  /** One request after the other, each as soon as the one before is answered. A connection that ends is replaced. */
  async repeat(next: (n: number) => Uint8Array): Promise<void> {
    let wire = await this.open()
    for (let n = 0; !this.isOver; n += 1) {
      await this.ask(wire, next(n))
      if (wire.isOpen || this.isOver) continue
      this.cut += 1
      await pause(COME_BACK_MS)
      wire = await this.open()
    }
    wire.close()
  }

  /** The same request many times at once; reads no answer. After a while, or when the service ends it, all over again. */
  async flood(request: Uint8Array, times: number, holdMs: number): Promise<void> {
    const bytes = Buffer.concat(Array.from({ length: times }, () => request))
    while (!this.isOver) {
      const wire = await this.open()
      wire.stopReading()
      this.sent += times
      const held = pause(holdMs)
      await Promise.race([wire.push(bytes), held])
      await Promise.race([wire.closed, held])
      if (!wire.isOpen) this.cut += 1
      wire.close()
      await pause(COME_BACK_MS)
    }
  }

  /** Many requests at once, whose answers are read, and again. */
  async pipeline(next: (n: number) => Uint8Array, depth: number): Promise<void> {
    let wire = await this.open()
    for (let n = 0; !this.isOver; n += depth) {
      const used = wire
      await Promise.all(Array.from({ length: depth }, (_, more) => this.ask(used, next(n + more))))
      if (wire.isOpen) continue
      this.cut += 1
      await pause(COME_BACK_MS)
      wire = await this.open()
    }
    wire.close()
  }

  #credentials(): string[] {
    const { senderToken, processorToken, cookie } = this.belongings
    if (this.#by === 'stranger') return []
    if (this.#by === 'sender') return [bearer(senderToken)]
    if (this.#by === 'processor') return [bearer(processorToken)]
    const { account, company } = ATTACKING_TENANT
    return [`Cookie: ${cookie}`, `Intray-Tenant: ${account}/${company}`, 'Origin: http://127.0.0.1']
  }
}

/** Attacks go on for a time, so they may wait for one. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

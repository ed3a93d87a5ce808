// What an attack is, and the client that attacks are written with. The process of an attack is killed when its time is over.

import { bearer, type Reply, type RequestParts, requestBytes, Wire } from './wire.ts'

export const ATTACKERS = ['stranger', 'sender', 'processor', 'operator'] as const
export type Attacker = (typeof ATTACKERS)[number]

export interface Attack {
  readonly name: string
  /** One line: what is sent. */
  readonly about: string
  readonly by: Attacker
  readonly connections: number
  /** The commit that `--against` names must fail under it. */
  readonly isControl?: true
  /** Seconds of attack before the victim is measured; 0 if left out. */
  readonly leadSeconds?: number
  /** The victim sends messages of 900 kB too. */
  readonly hasLargeVictim?: true
  /** Builds the requests before the attack begins; returns what each connection does then. It never ends by itself. */
  prepare(client: AttackClient): (connection: number) => Promise<void>
}

/** Of the tenant that attacks; the database is full of its events. */
export interface Target {
  readonly port: number
  readonly senderToken: string
  readonly processorToken: string
  readonly cookie: string
  /** A conversation with a quarter of all events. */
  readonly conversationId: number
  /** An event of 900 kB. */
  readonly largeEventId: number
}

export interface AttackCounts {
  readonly sent: number
  /** How often each status was the answer. */
  readonly statuses: Readonly<Record<string, number>>
  /** Connections that the service ended. */
  readonly cut: number
}

export const ATTACKING_TENANT = { account: 8, company: 1 } as const
/** The victim connects from another address, so that limits by address apply to the attacker alone. */
const ADDRESS = '127.0.0.2'
const COME_BACK_MS = 20

export class AttackClient {
  readonly target: Target
  readonly #by: Attacker
  sent = 0
  cut = 0
  readonly #statuses: Record<string, number> = {}

  constructor(target: Target, by: Attacker) {
    this.target = target
    this.#by = by
  }

  get counts(): AttackCounts {
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
      const wire = new Wire({ port: this.target.port, localAddress: ADDRESS })
      if (await wire.opened) return wire
      await pause(COME_BACK_MS)
    }
  }

  /** One request after the other, each as soon as the one before is answered. A connection that ends is replaced. */
  async repeat(next: (n: number) => Uint8Array): Promise<void> {
    let wire = await this.open()
    for (let n = 0; ; n += 1) {
      await this.ask(wire, next(n))
      if (wire.isOpen) continue
      this.cut += 1
      await pause(COME_BACK_MS)
      wire = await this.open()
    }
  }

  /** The same request many times at once; reads no answer. After a while, or when the service ends it, all over again. */
  async flood(request: Uint8Array, times: number, holdMs: number): Promise<void> {
    const bytes = Buffer.concat(Array.from({ length: times }, () => request))
    for (;;) {
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
    for (let n = 0; ; n += depth) {
      const used = wire
      await Promise.all(Array.from({ length: depth }, (_, more) => this.ask(used, next(n + more))))
      if (wire.isOpen) continue
      this.cut += 1
      await pause(COME_BACK_MS)
      wire = await this.open()
    }
  }

  #credentials(): string[] {
    const { senderToken, processorToken, cookie } = this.target
    if (this.#by === 'stranger') return []
    if (this.#by === 'sender') return [bearer(senderToken)]
    if (this.#by === 'processor') return [bearer(processorToken)]
    const { account, company } = ATTACKING_TENANT
    return [`Cookie: ${cookie}`, `Intray-Tenant: ${account}/${company}`, 'Origin: http://127.0.0.1']
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

// Proxy that loses answers: it forwards requests, waits until an answer is complete, and then cuts the connection after
// none, some or all but the last of the answer's bytes. Requests are forwarded in groups, so that they share a commit
// whatever the speed of this proxy.
// Promises: a counted cut happened after a commit: the lost answer had status 200.

import { once } from 'node:events'
import net from 'node:net'
import type { ProofContext } from './proof.ts'
import type { Random } from './random.ts'

const HEAD_END = Buffer.from('\r\n\r\n')
/** Forwarded together; a smaller group waits at most GATHER_MS for more. */
const GROUP = 24
const GATHER_MS = 10

export class CuttingProxy {
  /** Answers with status 200 that were lost. */
  cuts = 0
  /** Of these, how many were cut before their first byte. */
  unseen = 0
  passed = 0
  onCut: () => void = () => {}
  readonly #servicePort: () => number
  readonly #random: Random
  readonly #percent: number
  readonly #listener: net.Server
  readonly #pairs = new Set<() => void>()
  /** Bytes that clients have sent and the service has not received yet. */
  readonly #held = new Map<net.Socket, Buffer[]>()
  #gathering: NodeJS.Timeout | null = null

  private constructor(servicePort: () => number, random: Random, percent: number) {
    this.#servicePort = servicePort
    this.#random = random
    this.#percent = percent
    this.#listener = net.createServer((client) => this.#connect(client))
  }

  static async start(
    context: Pick<ProofContext, 'onCleanup'>,
    servicePort: () => number,
    random: Random,
    percent: number,
  ): Promise<CuttingProxy> {
    const proxy = new CuttingProxy(servicePort, random, percent)
    proxy.#listener.listen(0, '127.0.0.1')
    await once(proxy.#listener, 'listening')
    context.onCleanup(() => proxy.close())
    return proxy
  }

  get port(): number {
    return (this.#listener.address() as net.AddressInfo).port
  }

  close(): void {
    for (const end of this.#pairs) end()
    if (this.#gathering) clearTimeout(this.#gathering)
    this.#listener.close()
  }

  #connect(client: net.Socket): void {
    const service = net.connect(this.#servicePort(), '127.0.0.1')
    const end = () => {
      this.#pairs.delete(end)
      this.#held.delete(service)
      client.destroy()
      service.destroy()
    }
    this.#pairs.add(end)
    for (const socket of [client, service]) socket.on('error', end).on('close', end)
    client.on('data', (chunk: Buffer) => this.#hold(service, chunk))
    // A sender has one request in flight: all bytes until the answer is complete belong to it.
    let answer = Buffer.alloc(0)
    service.on('data', (chunk: Buffer) => {
      answer = Buffer.concat([answer, chunk])
      const whole = wholeAnswer(answer)
      if (whole === null) return
      answer = Buffer.alloc(0)
      this.#deliver(client, whole, end)
    })
  }

  #hold(service: net.Socket, chunk: Buffer): void {
    this.#held.set(service, [...(this.#held.get(service) ?? []), chunk])
    if (this.#held.size >= GROUP) this.#passOn()
    else this.#gathering ??= setTimeout(() => this.#passOn(), GATHER_MS)
  }

  #passOn(): void {
    if (this.#gathering) clearTimeout(this.#gathering)
    this.#gathering = null
    for (const [service, chunks] of this.#held) service.write(Buffer.concat(chunks))
    this.#held.clear()
  }

  #deliver(client: net.Socket, answer: Buffer, end: () => void): void {
    const isCommitted = answer.subarray(0, 12).toString('latin1') === 'HTTP/1.1 200'
    if (!isCommitted || !this.#random.percent(this.#percent)) {
      this.passed += 1
      client.write(answer)
      return
    }
    this.cuts += 1
    const kept = this.#random.percent(50) ? 0 : this.#random.below(answer.length)
    if (kept === 0) {
      this.unseen += 1
      end()
    } else client.write(answer.subarray(0, kept), end)
    this.onCut()
  }
}

/** The answer, once its head and its content length are complete. */
function wholeAnswer(bytes: Buffer): Buffer | null {
  const headEnd = bytes.indexOf(HEAD_END)
  if (headEnd === -1) return null
  const head = bytes.subarray(0, headEnd).toString('latin1')
  const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0)
  return bytes.length >= headEnd + HEAD_END.length + length ? bytes : null
}

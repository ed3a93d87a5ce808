// A way to the service that loses answers: it passes requests on, waits until a whole answer is there, and then cuts the
// connection after none, some or all but the last of the answer's bytes. Requests are passed on in groups, so that they share a
// commit whatever the pace of this proxy is.
// Promises: a cut that is counted fell behind a commit: the answer that was lost said 200.

import { once } from 'node:events'
import net from 'node:net'
import type { ProofContext } from './proof.ts'
import type { Random } from './random.ts'

const HEAD_END = Buffer.from('\r\n\r\n')
/** Passed on together; fewer than that do not wait for more for longer than GATHER_MS. */
const GROUP = 24
const GATHER_MS = 10

export class Cutter {
  /** Answers that said 200 and were lost. */
  cuts = 0
  /** Of these, so many were cut before their first byte. */
  unseen = 0
  passed = 0
  onCut: () => void = () => {}
  readonly #servicePort: () => number
  readonly #random: Random
  readonly #percent: number
  readonly #listener: net.Server
  readonly #pairs = new Set<() => void>()
  /** What clients have sent and the service has not been given yet. */
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
  ): Promise<Cutter> {
    const cutter = new Cutter(servicePort, random, percent)
    cutter.#listener.listen(0, '127.0.0.1')
    await once(cutter.#listener, 'listening')
    context.onCleanup(() => cutter.close())
    return cutter
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
    // A sender has one request under way: an answer is whatever comes until it is whole.
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

/** The answer, once its head and the length that it names are there. */
function wholeAnswer(bytes: Buffer): Buffer | null {
  const headEnd = bytes.indexOf(HEAD_END)
  if (headEnd === -1) return null
  const head = bytes.subarray(0, headEnd).toString('latin1')
  const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0)
  return bytes.length >= headEnd + HEAD_END.length + length ? bytes : null
}

// A connection between a sender and the service that can be broken, and counts how often it was: the sender sees a service
// that is down, hangs, or ends in the middle of its answer.

import net from 'node:net'
import { until } from './until.ts'

export type GateState =
  /** Carries everything. */
  | 'open'
  /** Every connection is ended. */
  | 'down'
  /** Takes connections and requests, and answers nothing. */
  | 'hanging'
  /** Carries the request, and half of the first part of the answer. */
  | 'cutting'

export class Gate {
  /** How many connections were broken, by how. */
  readonly faults: Record<Exclude<GateState, 'open'>, number> = { down: 0, hanging: 0, cutting: 0 }
  /** Called when an answer is about to be cut off. */
  onCut: () => void = () => {}
  target: number
  readonly #server: net.Server
  readonly #held = new Set<net.Socket>()
  #state: GateState = 'open'

  private constructor(target: number, server: net.Server) {
    this.target = target
    this.#server = server
    server.on('connection', (socket: net.Socket) => this.#take(socket))
  }

  static async open(target: number): Promise<Gate> {
    const server = net.createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return new Gate(target, server)
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as net.AddressInfo).port}`
  }

  /** How many connections hang now. */
  get hanging(): number {
    return this.#held.size
  }

  /** What hangs is ended. */
  set(state: GateState): void {
    this.#state = state
    for (const socket of this.#held) socket.destroy()
  }

  async untilHanging(): Promise<void> {
    await until('a request hangs', () => this.hanging > 0)
  }

  close(): void {
    this.set('down')
    this.#server.close()
  }

  #take(socket: net.Socket): void {
    socket.on('error', () => {})
    const state = this.#state
    if (state !== 'open') this.faults[state] += 1
    if (state === 'down') {
      socket.destroy()
      return
    }
    if (state === 'hanging') {
      this.#held.add(socket)
      socket.resume().on('close', () => this.#held.delete(socket))
      return
    }
    const service = net.connect({ port: this.target, host: '127.0.0.1' })
    service.on('error', () => socket.destroy())
    socket.on('close', () => service.destroy())
    service.on('close', () => socket.destroy())
    socket.pipe(service)
    if (state === 'open') {
      service.pipe(socket)
      return
    }
    service.once('data', (chunk: Buffer) => {
      this.onCut()
      socket.write(chunk.subarray(0, chunk.length >> 1), () => socket.destroy())
      service.destroy()
    })
  }
}

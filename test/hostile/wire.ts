// The other end of a hostile request: plays a case on a bare socket and tells everything that came back. Answers are read by
// the letter of RFC 9112, so that a header that slipped in, or a byte too many, shows.

import net from 'node:net'
import type { HostileCase } from './hostile-case.ts'

export interface WireAnswer {
  readonly status: number
  /** Names in lower case, in order, repeated ones too. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: string
}

export interface Observed {
  readonly answers: readonly WireAnswer[]
  /** The answer to a good request sent afterwards on the same connection; null if it was closed. */
  readonly probe: WireAnswer | null
  readonly isHanging: boolean
  /** What came back is not HTTP. */
  readonly garbled: string | null
}

/** Nothing takes nearly as long, on any machine: who waits longer waits for ever. */
export const HANG_MS = 40_000

const PROBE = 'GET /livez HTTP/1.1\r\nHost: probe.test\r\n\r\n'

/** Sends the case, waits for its answers, then asks for one more on the same connection or sees it closed. */
export async function play(port: number, item: HostileCase, hangMs = HANG_MS): Promise<Observed> {
  const wire = await Wire.open(port, item.answers)
  const count = item.answers.length
  try {
    for (const [n, piece] of item.pieces.entries()) {
      if (n > 0) await new Promise((resolve) => setImmediate(resolve))
      wire.write(piece)
    }
    let isHanging = !(await wire.wait(() => wire.answers.length >= count, hangMs))
    let probed = false
    const isExact = wire.answers.length === count && count > 0
    if (!isHanging && isExact && !saysClose(wire.answers.at(-1)!)) {
      probed = true
      wire.write(PROBE)
      isHanging = !(await wire.wait(() => wire.answers.length > count, hangMs))
    } else if (!isHanging && wire.answers.length <= count) {
      wire.end()
      isHanging = !(await wire.wait(() => false, hangMs))
    }
    const last = probed && wire.answers.length > count ? wire.answers.at(-1)! : null
    const answers = last ? wire.answers.slice(0, -1) : wire.answers
    return { answers, probe: last, isHanging, garbled: wire.garbled }
  } finally {
    wire.destroy()
  }
}

export function headerOf(answer: WireAnswer, name: string): string | undefined {
  return answer.headers.find(([found]) => found === name)?.[1]
}

export function saysClose(answer: WireAnswer): boolean {
  return headerOf(answer, 'connection')?.toLowerCase() === 'close'
}

class Wire {
  readonly answers: WireAnswer[] = []
  garbled: string | null = null
  readonly #socket: net.Socket
  readonly #bodiless: readonly boolean[]
  #rest = ''
  #wake: () => void = () => {}

  private constructor(socket: net.Socket, expected: HostileCase['answers']) {
    this.#socket = socket
    this.#bodiless = expected.map(({ bodiless }) => bodiless === true)
    socket.setNoDelay(true)
    socket.on('error', () => {})
    socket.on('data', (chunk: Buffer) => {
      this.#rest += chunk.toString('latin1')
      while (this.#takeAnswer()) {}
      this.#wake()
    })
    socket.on('close', () => this.#wake())
  }

  static async open(port: number, expected: HostileCase['answers']): Promise<Wire> {
    const socket = net.connect({ port, host: '127.0.0.1' })
    await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject))
    return new Wire(socket, expected)
  }

  write(bytes: Uint8Array | string): void {
    if (this.#socket.writable) this.#socket.write(bytes)
  }

  end(): void {
    this.#socket.end()
  }

  destroy(): void {
    this.#socket.destroy()
  }

  /** Until the condition holds or the connection is closed; false if neither comes. */
  async wait(condition: () => boolean, hangMs: number): Promise<boolean> {
    const deadline = performance.now() + hangMs
    while (!condition() && !this.#socket.closed && this.garbled === null) {
      const left = deadline - performance.now()
      if (left <= 0) return false
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left)
        this.#wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
    return true
  }

  /** Takes one whole answer off the front; 1xx are left out. */
  #takeAnswer(): boolean {
    const end = this.#rest.indexOf('\r\n\r\n')
    if (end === -1 || this.garbled !== null) return false
    const [first = '', ...lines] = this.#rest.slice(0, end).split('\r\n')
    const status = Number(/^HTTP\/1\.1 ([1-5]\d\d) [\x20-\x7e]*$/.exec(first)?.[1])
    const headers = lines.map((line) => /^([!#$%&'*+.^_`|~0-9A-Za-z-]+): ?([\t\x20-\x7e]*)$/.exec(line))
    if (Number.isNaN(status) || headers.includes(null)) {
      this.garbled = this.#rest.slice(0, end)
      return false
    }
    const pairs = headers.map((match) => [match![1]!.toLowerCase(), match![2]!] as const)
    // To HEAD an answer of the parser's own has a body all the same: it does not know what it was asked.
    const isBodiless =
      status < 200 || status === 204 || (this.#bodiless[this.answers.length] === true && this.#rest[end + 4] !== '{')
    const length = isBodiless ? 0 : Number(pairs.find(([name]) => name === 'content-length')?.[1] ?? Number.NaN)
    if (Number.isNaN(length)) {
      this.garbled = this.#rest.slice(0, end)
      return false
    }
    if (this.#rest.length < end + 4 + length) return false
    const body = Buffer.from(this.#rest.slice(end + 4, end + 4 + length), 'latin1').toString('utf8')
    if (status >= 200) this.answers.push({ status, headers: pairs, body })
    this.#rest = this.#rest.slice(end + 4 + length)
    return true
  }
}

// One connection's request: head and body in one buffer, built once; each send patches in a new source_ref and
// channel_ref.
// Promises: the same shape and length for every contestant; source_refs are 64 random bits, channel_refs one of 500.

import { randomBytes } from 'node:crypto'

const CHANNELS = 500
const REF_DIGITS = 16
const HEX = Buffer.from('0123456789abcdef', 'latin1')

/** A typical message of a form plugin: about 340 bytes. */
function bodyTemplate(): string {
  return JSON.stringify({
    source_ref: `cf7:12:${'0'.repeat(REF_DIGITS)}`,
    channel_ref: 'site:page:000',
    contact: { name: 'Ada Lovelace', email: 'ada.lovelace@example.org' },
    message: { type: 'text', text: 'Hello, I would like to know more about the analytical engine. Please call me.' },
    meta: { form_id: 12, page_url: 'https://www.example.org/contact?utm_source=newsletter' },
  })
}

export class RequestBuffer {
  readonly bytes: Buffer
  readonly #refAt: number
  readonly #channelAt: number
  readonly #state = new Uint32Array(4)

  constructor(port: number, token: string) {
    const body = bodyTemplate()
    const head = [
      'POST /v1/inbox/events HTTP/1.1',
      `Host: 127.0.0.1:${port}`,
      `Authorization: Bearer ${token}`,
      'Content-Type: application/json',
      'User-Agent: intray-bench/1',
      `Content-Length: ${Buffer.byteLength(body)}`,
    ].join('\r\n')
    this.bytes = Buffer.from(`${head}\r\n\r\n${body}`, 'latin1')
    this.#refAt = this.bytes.indexOf('0'.repeat(REF_DIGITS))
    this.#channelAt = this.bytes.indexOf('site:page:000') + 'site:page:'.length
    const seed = randomBytes(16)
    for (let i = 0; i < 4; i++) this.#state[i] = seed.readUInt32LE(i * 4)
  }

  /**
   * Turns the buffer into the next message. Only after the previous one was answered: the kernel then no longer needs
   * it.
   */
  next(): Buffer {
    const bytes = this.bytes
    this.#writeHex(this.#refAt, this.#random())
    this.#writeHex(this.#refAt + 8, this.#random())
    const channel = this.#random() % CHANNELS
    bytes[this.#channelAt] = 48 + Math.floor(channel / 100)
    bytes[this.#channelAt + 1] = 48 + (Math.floor(channel / 10) % 10)
    bytes[this.#channelAt + 2] = 48 + (channel % 10)
    return bytes
  }

  #writeHex(at: number, value: number): void {
    for (let i = 7; i >= 0; i--) {
      this.bytes[at + i] = HEX[value & 15]!
      value >>>= 4
    }
  }

  /** sfc32: random enough that 2 million refs never collide, and too cheap to affect the measurement. */
  #random(): number {
    const s = this.#state
    const result = (s[0]! + s[1]! + s[3]!) >>> 0
    s[3] = s[3]! + 1
    s[0] = s[1]! ^ (s[1]! >>> 9)
    s[1] = s[2]! + (s[2]! << 3)
    s[2] = ((s[2]! << 21) | (s[2]! >>> 11)) + result
    return result
  }
}

// Reads a file or stdin line by line, byte for byte, in the memory of one line.

export interface Line {
  /** Counted from 1, blank ones included. */
  readonly number: number
  /** Without its line break; null if it is longer than allowed. */
  readonly bytes: Buffer | null
}

const LF = 10
const CR = 13

/** Skips blank lines. CRLF is a line break too. */
export async function* splitLines(chunks: AsyncIterable<Buffer>, maxBytes: number): AsyncGenerator<Line> {
  const current = new Collected(maxBytes)
  let number = 0
  for await (const chunk of chunks) {
    let from = 0
    for (let at = chunk.indexOf(LF); at !== -1; at = chunk.indexOf(LF, from)) {
      current.add(chunk.subarray(from, at))
      from = at + 1
      number += 1
      const bytes = withoutReturn(current.take())
      if (!isBlank(bytes)) yield { number, bytes }
    }
    current.add(chunk.subarray(from))
  }
  const rest = current.take()
  if (!isBlank(rest)) yield { number: number + 1, bytes: rest }
}

/** The whole input as one line. */
export async function* wholeText(chunks: AsyncIterable<Buffer>, maxBytes: number): AsyncGenerator<Line> {
  const all = new Collected(maxBytes)
  for await (const chunk of chunks) all.add(chunk)
  yield { number: 1, bytes: all.take() }
}

/** Joins parts; drops them once they exceed the limit. */
class Collected {
  readonly #maxBytes: number
  #parts: Buffer[] = []
  #size = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  add(part: Buffer): void {
    if (part.length === 0) return
    this.#size += part.length
    if (this.#size > this.#maxBytes) this.#parts = []
    else this.#parts.push(part)
  }

  take(): Buffer | null {
    const bytes = this.#size > this.#maxBytes ? null : Buffer.concat(this.#parts)
    this.#parts = []
    this.#size = 0
    return bytes
  }
}

function withoutReturn(bytes: Buffer | null): Buffer | null {
  return bytes?.at(-1) === CR ? bytes.subarray(0, -1) : bytes
}

function isBlank(bytes: Buffer | null): boolean {
  return bytes?.every((byte) => byte === 0x20 || byte === 0x09 || byte === CR) ?? false
}

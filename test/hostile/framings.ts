// How a body is framed: every way that is right, and the ways that two readers take differently. Each wrong one is followed
// by a whole good message: whoever reads on stores it.

export interface FramingPart {
  readonly name: string
  /**
   * `fine`. `broken`: 400 for the head, closed. `refused`: 400 for the head by our own check, closed. `body`: the head is
   * good and the body breaks off: 400 unless the head is refused before. `none`: no body at all. `endless`: a length
   * that never comes.
   */
  readonly verdict: 'fine' | 'broken' | 'refused' | 'body' | 'none' | 'endless'
  readonly isChunked: boolean
  lines(length: number): readonly string[]
  frame(body: Buffer): Buffer
}

const same = (body: Buffer): Buffer => body

const sized = (name: string, verdict: FramingPart['verdict'], lines: FramingPart['lines']): FramingPart => ({
  name,
  verdict,
  isChunked: false,
  lines,
  frame: same,
})

const TE = 'Transfer-Encoding: chunked'

const chunks = (
  name: string,
  verdict: FramingPart['verdict'],
  frame: (body: Buffer) => Buffer,
  lines: readonly string[] = [TE],
): FramingPart => ({ name, verdict, isChunked: true, lines: () => lines, frame })

/** The body as one chunk, its size line and what follows it as given. */
const around =
  (before: (size: string) => string, after: string) =>
  (body: Buffer): Buffer =>
    body.length === 0
      ? Buffer.from('0\r\n\r\n')
      : Buffer.concat([Buffer.from(before(body.length.toString(16)), 'latin1'), body, Buffer.from(after, 'latin1')])

const END = '\r\n0\r\n\r\n'
const plain = around((size) => `${size}\r\n`, END)

const inChunksOf =
  (bytes: number) =>
  (body: Buffer): Buffer => {
    const step = Math.max(bytes, Math.ceil(body.length / 2000))
    const parts: Buffer[] = []
    for (let at = 0; at < body.length; at += step) {
      const chunk = body.subarray(at, at + step)
      parts.push(Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n'))
    }
    return Buffer.concat([...parts, Buffer.from('0\r\n\r\n')])
  }

export const FRAMINGS: readonly FramingPart[] = [
  sized('a length', 'fine', (length) => [`Content-Length: ${length}`]),
  sized('a length with white space', 'fine', (length) => [`content-length:\t ${length} \t`]),
  sized('a length with zeros before', 'fine', (length) => [`Content-Length: 000${length}`]),
  chunks('one chunk', 'fine', plain),
  chunks('chunks of one byte', 'fine', inChunksOf(1)),
  chunks('chunks of 7 bytes', 'fine', inChunksOf(7)),
  chunks('CHUNKED in capitals', 'fine', plain, ['TRANSFER-ENCODING: \tCHUNKED ']),
  chunks(
    'a size in capitals and with zeros',
    'fine',
    around((size) => `000${size.toUpperCase()}\r\n`, '\r\n0000\r\n\r\n'),
  ),
  chunks(
    'a chunk extension',
    'fine',
    around((size) => `${size};a=b;c="d e"\r\n`, END),
  ),
  chunks(
    'trailers',
    'fine',
    around((size) => `${size}\r\n`, '\r\n0\r\nX-Trailer: 1\r\nHost: evil.test\r\n\r\n'),
  ),
  { name: 'no body', verdict: 'none', isChunked: false, lines: () => [], frame: () => Buffer.alloc(0) },
  sized('a length that never comes', 'endless', () => ['Content-Length: 4000000000']),

  sized('two lengths', 'broken', (length) => [`Content-Length: ${length}`, `Content-Length: ${length + 1}`]),
  sized('two equal lengths', 'broken', (length) => [`Content-Length: ${length}`, `Content-Length: ${length}`]),
  sized('a list of lengths', 'broken', (length) => [`Content-Length: ${length}, ${length}`]),
  sized('a length and a word', 'broken', (length) => [`Content-Length: ${length} ${length}`]),
  sized('a signed length', 'broken', (length) => [`Content-Length: +${length}`]),
  sized('a negative length', 'broken', () => ['Content-Length: -1']),
  sized('a hexadecimal length', 'broken', () => ['Content-Length: 0x2']),
  sized('a length with a fraction', 'broken', () => ['Content-Length: 2.0']),
  sized('a length with an exponent', 'broken', () => ['Content-Length: 2e0']),
  sized('an empty length', 'broken', () => ['Content-Length:']),
  sized('a quoted length', 'broken', () => ['Content-Length: "2"']),
  sized('a length above 64 bits', 'broken', () => ['Content-Length: 18446744073709551617']),
  sized('a length after U+000B', 'broken', (length) => [`Content-Length: \x0b${length}`]),
  sized('a length in other digits', 'broken', () => ['Content-Length: \u00b2']),
  sized('a space before the colon of the length', 'broken', (length) => [`Content-Length : ${length}`]),
  sized('a folded length', 'broken', (length) => ['Content-Length:', ` ${length}`]),

  // CL.TE, TE.CL and TE.TE.
  chunks('a length, then chunked', 'broken', plain, ['Content-Length: 4', TE]),
  chunks('chunked, then a length', 'broken', plain, [TE, 'Content-Length: 4']),
  chunks('chunked, then a length of zero', 'broken', plain, [TE, 'Content-Length: 0']),
  chunks('chunked twice', 'broken', plain, [TE, TE]),
  chunks('chunked, chunked', 'broken', plain, ['Transfer-Encoding: chunked, chunked']),
  chunks('chunked, then identity', 'broken', plain, [TE, 'Transfer-Encoding: identity']),
  chunks('identity, then chunked', 'broken', plain, ['Transfer-Encoding: identity', TE]),
  chunks('gzip, chunked', 'broken', plain, ['Transfer-Encoding: gzip, chunked']),
  chunks('chunked and a comma', 'broken', plain, ['Transfer-Encoding: chunked,']),
  chunks('a comma and chunked', 'broken', plain, ['Transfer-Encoding: ,chunked']),
  chunks('chunked after U+000B', 'broken', plain, ['Transfer-Encoding: \x0bchunked']),
  chunks('a folded chunked', 'broken', plain, ['Transfer-Encoding:', ' chunked']),
  chunks('a space before the colon of chunked', 'broken', plain, ['Transfer-Encoding : chunked']),
  chunks('an empty coding', 'broken', plain, ['Transfer-Encoding:']),
  chunks('chunked behind LF', 'broken', plain, ['X: y\nTransfer-Encoding: chunked']),
  chunks('xchunked', 'refused', plain, ['Transfer-Encoding: xchunked']),
  chunks('chunkedx', 'refused', plain, ['Transfer-Encoding: chunkedx']),
  chunks('"chunked"', 'refused', plain, ['Transfer-Encoding: "chunked"']),
  chunks('chunked;q=1', 'refused', plain, ['Transfer-Encoding: chunked;q=1']),
  chunks('identity', 'refused', plain, ['Transfer-Encoding: identity']),
  chunks('a no-break space in chunked', 'refused', plain, ['Transfer-Encoding: chunked\xa0']),

  chunks('a size that is no number', 'body', () => Buffer.from('zz\r\n{}\r\n0\r\n\r\n')),
  chunks('a size with 0x', 'body', () => Buffer.from('0x2\r\n{}\r\n0\r\n\r\n')),
  chunks('a signed size', 'body', () => Buffer.from('+2\r\n{}\r\n0\r\n\r\n')),
  chunks('a negative size', 'body', () => Buffer.from('-2\r\n{}\r\n0\r\n\r\n')),
  chunks('an empty size', 'body', () => Buffer.from('\r\n{}\r\n0\r\n\r\n')),
  chunks('a size above 64 bits', 'body', () => Buffer.from('10000000000000002\r\n{}\r\n0\r\n\r\n')),
  chunks('a space behind the size', 'body', () => Buffer.from('2 \r\n{}\r\n0\r\n\r\n')),
  chunks('a space before the size', 'body', () => Buffer.from(' 2\r\n{}\r\n0\r\n\r\n')),
  chunks('a size ended by LF', 'body', () => Buffer.from('2\n{}\r\n0\r\n\r\n')),
  chunks('a chunk ended by LF', 'body', () => Buffer.from('2\r\n{}\n0\r\n\r\n')),
  chunks('an extension with LF', 'body', () => Buffer.from('2;a\nb\r\n{}\r\n0\r\n\r\n')),
  chunks('an empty extension', 'body', () => Buffer.from('2;\r\n{}\r\n0\r\n\r\n')),
  chunks('an extension of 20 kB', 'body', () => Buffer.from(`2;${'a'.repeat(20_000)}\r\n{}\r\n0\r\n\r\n`)),
  chunks('more in a chunk than its size', 'body', () => Buffer.from('1\r\n{}\r\n0\r\n\r\n')),
  chunks('less in a chunk than its size', 'body', () => Buffer.from('3\r\n{}\r\n0\r\n\r\n')),
  chunks('the last chunk ended by LF', 'body', () => Buffer.from('2\r\n{}\r\n0\n\r\n')),
  chunks('the end by LF', 'body', () => Buffer.from('2\r\n{}\r\n0\r\n\n')),
  chunks('a length among the trailers', 'body', () => Buffer.from('2\r\n{}\r\n0\r\nContent-Length: 5\r\n\r\n')),
  chunks('chunked among the trailers', 'body', () => Buffer.from(`2\r\n{}\r\n0\r\n${TE}\r\n\r\n`)),
  chunks('a trailer without a colon', 'body', () => Buffer.from('2\r\n{}\r\n0\r\nno colon\r\n\r\n')),
  chunks('a folded trailer', 'body', () => Buffer.from('2\r\n{}\r\n0\r\nX: y\r\n z\r\n\r\n')),
]

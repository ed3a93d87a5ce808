// The head of a request, part by part: request lines, hosts, further header lines and expectations, each with its verdict
// by RFC 9112. The verdicts are written by hand; nothing here asks the implementation.

/** `fine`: goes on. `broken`: 400 and the connection is closed. `refused`: 400. `huge`: 431 and closed. */
export type HeadVerdict = 'fine' | 'broken' | 'refused' | 'huge'

export interface LinePart {
  readonly name: string
  readonly verdict: HeadVerdict
  render(method: string, target: string, version: string): string
}

const line = (name: string, verdict: HeadVerdict, render: LinePart['render']): LinePart => ({ name, verdict, render })

export const LINES: readonly LinePart[] = [
  line('a request line', 'fine', (method, target, version) => `${method} ${target} HTTP/${version}`),
  line('two spaces', 'fine', (method, target, version) => `${method}  ${target}  HTTP/${version}`),
  line('empty lines before', 'fine', (method, target, version) => `\r\n\r\n${method} ${target} HTTP/${version}`),
  line('a space before', 'broken', (method, target, version) => ` ${method} ${target} HTTP/${version}`),
  line('a space behind', 'broken', (method, target, version) => `${method} ${target} HTTP/${version} `),
  line('a tab after the method', 'broken', (method, target, version) => `${method}\t${target} HTTP/${version}`),
  line('a tab after the target', 'broken', (method, target, version) => `${method} ${target}\tHTTP/${version}`),
  line('no version', 'broken', (method, target) => `${method} ${target}`),
  line('no target', 'broken', (method, _target, version) => `${method} HTTP/${version}`),
  line('http in small letters', 'broken', (method, target, version) => `${method} ${target} http/${version}`),
  line('HTTP/1.2', 'broken', (method, target) => `${method} ${target} HTTP/1.2`),
  line('HTTP/1.10', 'broken', (method, target) => `${method} ${target} HTTP/1.10`),
  line('HTTP/0.9', 'broken', (method, target) => `${method} ${target} HTTP/0.9`),
  line('HTTP/2.0', 'broken', (method, target) => `${method} ${target} HTTP/2.0`),
  line('HTTP/9.9', 'broken', (method, target) => `${method} ${target} HTTP/9.9`),
  line('HTTP/1', 'broken', (method, target) => `${method} ${target} HTTP/1`),
  line('a line ended by LF', 'broken', (method, target, version) => `${method} ${target} HTTP/${version}\nX: y`),
  line('a line ended by CR', 'broken', (method, target, version) => `${method} ${target} HTTP/${version}\rX: y`),
  line('U+0000 in the target', 'broken', (method, target, version) => `${method} ${target}\0 HTTP/${version}`),
  line('DEL in the target', 'broken', (method, target, version) => `${method} ${target}\x7f HTTP/${version}`),
  line(
    'a raw byte above ASCII in the target',
    'broken',
    (method, target, version) => `${method} ${target}\xff HTTP/${version}`,
  ),
  line('TLS', 'broken', () => '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'),
  line(
    'an address of 20 kB',
    'huge',
    (method, target, version) => `${method} ${target}?${'x'.repeat(20_000)} HTTP/${version}`,
  ),
]

/** Methods that are none: the parser knows what a method is. */
export const BROKEN_METHODS = ['get', 'Post', 'BREW', 'PO\0ST', 'P\xd6ST', '{}', 'POSTPOST'] as const

export interface HeaderPart {
  readonly name: string
  readonly verdict: HeadVerdict
  readonly lines: readonly string[]
}

const part = (name: string, verdict: HeadVerdict, ...lines: string[]): HeaderPart => ({ name, verdict, lines })

export const HOSTS: readonly HeaderPart[] = [
  part('a host', 'fine', 'Host: intray.test'),
  part('a host and a port', 'fine', 'Host: intray.test:8080'),
  part('an IPv4 address', 'fine', 'Host: 127.0.0.1:80'),
  part('an IPv6 address', 'fine', 'host: [::1]:80'),
  part('a host and an empty port', 'fine', 'HOST:intray.test:'),
  part('a host with an underscore', 'fine', 'Host: intray_1.test'),
  part('no host', 'refused'),
  part('two hosts', 'refused', 'Host: intray.test', 'Host: other.test'),
  part('two equal hosts', 'refused', 'Host: intray.test', 'hOST: intray.test'),
  part('an empty host', 'refused', 'Host:'),
  part('a host of spaces', 'refused', 'Host: \t '),
  part('userinfo in the host', 'refused', 'Host: admin@intray.test'),
  part('a password in the host', 'refused', 'Host: a:b@intray.test'),
  part('a path in the host', 'refused', 'Host: intray.test/v1'),
  part('a query in the host', 'refused', 'Host: intray.test?x'),
  part('a list of hosts', 'refused', 'Host: intray.test, other.test'),
  part('a list of hosts without a space', 'refused', 'Host: intray.test,other.test'),
  part('two words in the host', 'refused', 'Host: intray.test other.test'),
  part('a port that is no number', 'refused', 'Host: intray.test:http'),
  part('a port alone', 'refused', 'Host: :80'),
  part('an IPv6 address without brackets', 'refused', 'Host: ::1'),
  part('half a bracket', 'refused', 'Host: [::1'),
  part('a URL as the host', 'refused', 'Host: http://intray.test'),
  part('a quoted host', 'refused', 'Host: "intray.test"'),
  part('a host above ASCII', 'refused', 'Host: intr\xe4y.test'),
  part('a backslash in the host', 'refused', 'Host: intray.test\\a'),
  part('SQL in the host', 'refused', "Host: '; drop table events --"),
  part('a folded host', 'broken', 'Host: intray.test', ' other.test'),
  part('a space before the colon of Host', 'broken', 'Host : intray.test'),
  part('a host with U+0000', 'broken', 'Host: intray\0.test'),
  part('a host with CR', 'broken', 'Host: intray\r.test'),
  part('a host with LF', 'broken', 'Host: intray.test\nX-Injected: 1'),
]

/** Without a Host, HTTP/1.0 is whole. */
export const NO_HOST = HOSTS.find(({ name }) => name === 'no host')!

export const FURTHER: readonly HeaderPart[] = [
  part('nothing further', 'fine'),
  part('hop-by-hop tricks', 'fine', 'Connection: content-length, authorization'),
  part(
    'an upgrade to HTTP/2',
    'fine',
    'Connection: Upgrade, HTTP2-Settings',
    'Upgrade: h2c',
    'HTTP2-Settings: AAMAAABkAAQAAP__',
  ),
  part('an upgrade to a WebSocket', 'fine', 'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13'),
  part('another method by a header', 'fine', 'X-HTTP-Method-Override: DELETE', 'X-Method: PUT'),
  part('another address by a header', 'fine', 'X-Original-URL: /livez', 'X-Rewrite-URL: /livez'),
  part('another sender by a header', 'fine', 'X-Forwarded-For: 10.0.0.1', 'Forwarded: for=10.0.0.1;host=evil.test'),
  part('TE and Trailer', 'fine', 'TE: chunked, trailers', 'Trailer: Content-Length, Authorization'),
  part('underscores for hyphens', 'fine', 'Content_Length: 5', 'Transfer_Encoding: chunked'),
  part('bytes above ASCII', 'fine', 'User-Agent: \xff\xfe\x80', 'X-Text: \xc3\xa4'),
  part('encoded CRLF', 'fine', 'User-Agent: a%0d%0aX-Injected: 1', 'Traceparent: 00-%0d%0a'),
  part('a range and conditions', 'fine', 'Range: bytes=0-1', 'If-None-Match: *', 'If-Match: "x"'),
  part('many headers', 'fine', ...Array.from({ length: 80 }, (_, n) => `X${n}: y`)),
  part('no colon', 'broken', 'No colon here'),
  part('no name', 'broken', ': value'),
  part('a space before the colon', 'broken', 'X-A : b'),
  part('a folded line', 'broken', 'X-A: b', ' c'),
  part('a line folded by a tab', 'broken', 'X-A: b', '\tc'),
  part('a name above ASCII', 'broken', 'N\xe4me: b'),
  part('a bracket in a name', 'broken', 'X(A): b'),
  part('U+0000 in a value', 'broken', 'X-A: b\0c'),
  part('U+0001 in a value', 'broken', 'X-A: b\x01c'),
  part('DEL in a value', 'broken', 'X-A: b\x7fc'),
  part('CR in a value', 'broken', 'X-A: b\rX-Injected: 1'),
  part('LF for CRLF', 'broken', 'X-A: b\nX-Injected: 1'),
  part('two CR', 'broken', 'X-A: b\r'),
  part('the end by LF LF', 'broken', 'X-A: b\n'),
  part('a header of 20 kB', 'huge', `X-A: ${'x'.repeat(20_000)}`),
  part('a header name of 20 kB', 'huge', `${'x'.repeat(20_000)}: a`),
  part('101 headers', 'huge', ...Array.from({ length: 101 }, (_, n) => `X${n}: y`)),
  part('4,000 headers', 'huge', ...Array.from({ length: 4000 }, (_, n) => `X-${n}: y`)),
]

export interface ExpectPart {
  readonly name: string
  readonly verdict: 'fine' | 'unknown'
  readonly lines: readonly string[]
}

export const EXPECTATIONS: readonly ExpectPart[] = [
  { name: 'no Expect', verdict: 'fine', lines: [] },
  { name: 'an empty Expect', verdict: 'fine', lines: ['Expect:'] },
  { name: '100-continue', verdict: 'fine', lines: ['Expect: 100-Continue'] },
  { name: 'tea', verdict: 'unknown', lines: ['Expect: tea'] },
  { name: '100-continue twice', verdict: 'unknown', lines: ['Expect: 100-continue', 'Expect: 100-continue'] },
  { name: '100-continue and more', verdict: 'unknown', lines: ['Expect: 100-continue, tea'] },
]

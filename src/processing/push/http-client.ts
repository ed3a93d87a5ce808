// Sends the requests of one endpoint. Every connection goes through the guard: an address in the URL is checked as it is
// written there once parsed, a name by the addresses that it resolves to, and the socket connects to a checked address. So a
// DNS answer that changes between check and connect changes nothing. Redirects are answers like any other.
//
// Bounded: connections, the time to connect, the time until the answer, the bytes of the answer and the time that these take.

import http from 'node:http'
import https from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import type { Duplex } from 'node:stream'
import type { AddressGuard } from './address-guard.ts'
import type { ResolveName } from './resolver.ts'
import { hostOf } from './target-url.ts'

/** Kept of an answer's body. */
export const MAX_ANSWER_BYTES = 1024
/** An address that takes longer to connect is down or filtered; most take less than a tenth. */
const CONNECT_MS = 5000
/** Once the status has come, the rest of the answer decides nothing: it must not hold a socket for long. */
const BODY_MS = 1000
/** Headers of an answer, in bytes. */
const MAX_HEADER_BYTES = 16 * 1024
/** Bodies up to this are copied into one buffer. */
const JOINED_BYTES = 64 * 1024
/** An idle connection is closed after this, before most servers and proxies do so themselves. */
const IDLE_MS = 15_000

/** Why there was no answer. Also the label of a metric. */
export type FailureKind =
  | 'forbidden_address'
  | 'unresolved'
  | 'refused'
  | 'timeout'
  | 'reset'
  | 'tls'
  | 'invalid_answer'
  | 'stopped'

export type PushResult =
  | {
      readonly status: number
      /** The first bytes of the body, whatever they are. */
      readonly body: Buffer
      readonly retryAfter: string | null
      readonly ms: number
    }
  | { readonly failure: FailureKind; readonly reason: string; readonly ms: number }

export interface PushRequest {
  readonly headers: Readonly<Record<string, string>>
  /** Sent one after the other. */
  readonly body: readonly Uint8Array[]
  /** From the beginning until the status. */
  readonly timeoutMs: number
}

export interface HttpClientOptions {
  readonly url: URL
  readonly guard: AddressGuard
  readonly resolve: ResolveName
  readonly maxSockets: number
}

/** An address that the guard forbids. */
class ForbiddenAddress extends Error {
  readonly code = 'FORBIDDEN_ADDRESS'
}

type Attempt = PushResult & { readonly isStale?: boolean }

export class HttpClient {
  readonly #options: http.RequestOptions
  readonly #agent: http.Agent
  readonly #request: typeof http.request
  /** Emitted by a socket that can be written to. */
  readonly #connected: 'connect' | 'secureConnect'
  readonly #underWay = new Set<(failure: FailureKind) => void>()
  #isStopped = false

  constructor({ url, guard, resolve, maxSockets }: HttpClientOptions) {
    const isTls = url.protocol === 'https:'
    const Guarded = isTls ? guardedAgent(https.Agent, guard) : guardedAgent(http.Agent, guard)
    this.#agent = new Guarded({
      keepAlive: true,
      maxSockets,
      maxFreeSockets: maxSockets,
      timeout: IDLE_MS,
      lookup: guardedLookup(guard, resolve),
    })
    const { protocol, port, pathname, search } = url
    this.#options = {
      method: 'POST',
      protocol,
      hostname: hostOf(url),
      port,
      path: pathname + search,
      agent: this.#agent,
      maxHeaderSize: MAX_HEADER_BYTES,
    }
    this.#request = isTls ? https.request : http.request
    this.#connected = isTls ? 'secureConnect' : 'connect'
  }

  /** Never rejects. */
  async post(request: PushRequest): Promise<PushResult> {
    const beganAt = performance.now()
    const first = await this.#try(request, beganAt)
    // The server closed an idle connection as the request went out: it is sent once more, on a new one.
    return first.isStale ? this.#try(request, beganAt) : first
  }

  /** Requests under way end as `stopped`, later ones at once. */
  stop(): void {
    this.#isStopped = true
    for (const end of this.#underWay) end('stopped')
    this.#agent.destroy()
  }

  #try({ headers, body, timeoutMs }: PushRequest, beganAt: number): Promise<Attempt> {
    const ms = () => performance.now() - beganAt
    if (this.#isStopped) return Promise.resolve({ failure: 'stopped', reason: REASONS.stopped, ms: 0 })
    return new Promise((resolve) => {
      const req = this.#request({ ...this.#options, headers })
      let isAnswered = false
      // A request that waits for a socket or was upgraded emits nothing when it is destroyed, so the promise ends here.
      const end = (failure: FailureKind, reason = REASONS[failure], isStale = false) => {
        done({ failure, reason, ms: ms(), isStale })
        req.destroy()
      }
      this.#underWay.add(end)
      const timer = setTimeout(end, Math.max(0, timeoutMs - ms()), 'timeout')
      let connectTimer: NodeJS.Timeout | undefined
      const done = (result: Attempt) => {
        clearTimeout(timer)
        clearTimeout(connectTimer)
        this.#underWay.delete(end)
        resolve(result)
      }
      const answered = ({ statusCode, headers: given }: http.IncomingMessage): ((kept: Buffer) => void) => {
        isAnswered = true
        clearTimeout(timer)
        const answer = { status: statusCode ?? 0, retryAfter: given['retry-after'] ?? null, ms: ms() }
        return (kept) => {
          done({ ...answer, body: kept })
          // Answered before the body was taken: the socket would wait for a server that does not read.
          if (!req.writableFinished) req.destroy()
        }
      }
      req.on('socket', (socket) => {
        if (!socket.connecting) return
        connectTimer = setTimeout(end, Math.min(CONNECT_MS, timeoutMs), 'timeout')
        socket.once(this.#connected, () => clearTimeout(connectTimer))
      })
      // Behind the status nothing decides any more: what follows may be cut off, or be no HTTP.
      req.on('error', (error: NodeJS.ErrnoException) => {
        const failure = kindOf(error)
        if (!isAnswered) end(failure, reasonOf(failure, error), req.reusedSocket && failure === 'reset')
      })
      req.on('upgrade', (res, socket) => {
        socket.destroy()
        answered(res)(Buffer.alloc(0))
      })
      req.on('response', (res) => void beginningOf(res).then(answered(res)))
      req.on('close', () => isAnswered || end('reset'))
      write(req, body)
    })
  }
}

/** Small parts go out in one segment. */
function write(req: http.ClientRequest, body: readonly Uint8Array[]): void {
  const size = body.reduce((sum, part) => sum + part.byteLength, 0)
  if (size <= JOINED_BYTES) {
    req.end(body.length === 1 ? body[0] : Buffer.concat(body))
    return
  }
  for (const part of body) req.write(part)
  req.end()
}

/** An answer that goes on is cut off, and its connection with it. */
function beginningOf(res: http.IncomingMessage): Promise<Buffer> {
  return new Promise((resolve) => {
    const parts: Buffer[] = []
    let size = 0
    const end = () => {
      clearTimeout(timer)
      resolve(Buffer.concat(parts).subarray(0, MAX_ANSWER_BYTES))
    }
    const cut = () => {
      res.destroy()
      end()
    }
    const timer = setTimeout(cut, BODY_MS)
    res.on('data', (part: Buffer) => {
      parts.push(part)
      size += part.length
      if (size > MAX_ANSWER_BYTES) cut()
    })
    res.on('end', end)
    res.on('error', end)
    res.on('close', end)
  })
}

type Connect = (
  options: http.AgentOptions & { host?: string | null },
  callback: OnConnected,
) => Duplex | null | undefined
type OnConnected = (error: Error | null, socket: Duplex) => void

/** Addresses in a URL never reach the lookup, so they are checked where a connection is made. */
function guardedAgent(Agent: typeof http.Agent, guard: AddressGuard): typeof http.Agent {
  return class extends Agent {
    override createConnection(...[options, callback]: Parameters<Connect>): ReturnType<Connect> {
      const host = hostOf({ hostname: options.host ?? '' })
      if (isIP(host) !== 0 && !guard.isAllowed(host)) {
        callback(new ForbiddenAddress(`${host} is not an address that a push may connect to`), undefined as never)
        return undefined
      }
      return super.createConnection(options as never, callback as never) as ReturnType<Connect>
    }
  }
}

/** Hands out only addresses that it has checked; the socket connects to these. */
function guardedLookup(guard: AddressGuard, resolve: ResolveName): LookupFunction {
  return (name, options, callback) => {
    resolve(name).then(
      (addresses) => {
        const allowed = addresses.filter((address) => guard.isAllowed(address))
        const found = allowed.map((address) => ({ address, family: isIP(address) }))
        if (addresses.length === 0) callback(unresolved(name), [])
        else if (found.length === 0) {
          callback(new ForbiddenAddress(`${name} has no address that a push may connect to`), [])
        } else if (options.all) callback(null, found)
        else callback(null, found[0]!.address, found[0]!.family)
      },
      (error: NodeJS.ErrnoException) => callback(error.code ? error : unresolved(name), []),
    )
  }
}

function unresolved(name: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${name} has no address`), { code: 'ENOTFOUND', syscall: 'lookup' })
}

const RESET = ['ECONNRESET', 'EPIPE', 'ECONNABORTED', 'ERR_STREAM_PREMATURE_CLOSE']
const REFUSED = [
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EADDRNOTAVAIL',
  'EHOSTDOWN',
  'ENETDOWN',
  'EACCES',
  'EPERM',
]

function kindOf(error: NodeJS.ErrnoException): FailureKind {
  const { code = '', syscall = '' } = firstOf(error)
  if (code === 'FORBIDDEN_ADDRESS') return 'forbidden_address'
  if (RESET.includes(code)) return 'reset'
  if (REFUSED.includes(code)) return 'refused'
  if (code === 'ETIMEDOUT') return 'timeout'
  if (code.startsWith('HPE_')) return 'invalid_answer'
  if (code === 'ENOTFOUND' || /^(getaddrinfo|query|lookup)/.test(syscall)) return 'unresolved'
  if (/^(ERR_TLS|ERR_SSL|EPROTO|CERT_|UNABLE_TO|DEPTH_ZERO|SELF_SIGNED)/.test(code)) return 'tls'
  return 'refused'
}

/** Of several addresses that were tried, the failure of the first. */
function firstOf(error: NodeJS.ErrnoException): NodeJS.ErrnoException {
  return error instanceof AggregateError ? ((error.errors[0] as NodeJS.ErrnoException | undefined) ?? error) : error
}

const REASONS: Readonly<Record<FailureKind, string>> = {
  forbidden_address: 'The address is private, local or reserved, and INTRAY_PUSH_ALLOW does not allow it.',
  unresolved: 'The name of the host has no address.',
  refused: 'The connection was refused.',
  timeout: 'There was no answer in time.',
  reset: 'The connection was closed before an answer.',
  tls: 'The TLS connection failed.',
  invalid_answer: 'The answer is not valid HTTP.',
  stopped: 'The service stopped.',
}

/** Sentences of our own with the code: messages of the system name addresses and hosts. */
function reasonOf(failure: FailureKind, error: NodeJS.ErrnoException): string {
  const code = firstOf(error).code ?? ''
  return failure === 'forbidden_address' || failure === 'stopped' || !/^[A-Z_0-9]+$/.test(code)
    ? REASONS[failure]
    : `${REASONS[failure].slice(0, -1)} (${code}).`
}

// TLS on the server's own port: TLS 1.2 or newer with Node's choice of ciphers, HTTP/1.1 only. A connection begins with its
// handshake, which costs more than a request, so limits on connections count from there; the decrypted connection then goes the
// way of a plain one.

import type { RequestListener, Server, ServerOptions } from 'node:http'
import https from 'node:https'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { Clock } from '../../runtime/clock.ts'
import { newUuid } from '../../runtime/id.ts'
import type { KeyPairFiles } from '../../runtime/key-pair.ts'
import type { Logger } from '../../runtime/log.ts'
import type { Service } from '../../runtime/service.ts'
import { invalidRequest } from '../problem.ts'
import { CertificateRenewal } from './certificate-renewal.ts'
import { rawAnswer } from './client-error.ts'

const MIN_VERSION = 'TLSv1.2'
const PLAIN_HTTP = invalidRequest('This port speaks TLS. Send the request to https:// instead of http://.')

export interface TlsOptions {
  readonly files: KeyPairFiles
  readonly handshakeTimeout: number
  readonly clock: Clock
  readonly logger: Logger
}

export class Tls implements Service {
  readonly #options: TlsOptions
  readonly #certificate: CertificateRenewal
  /** Connections in their handshake, by their addresses. */
  readonly #handshakes = new Map<string, Socket>()
  #server: https.Server | null = null

  /** Throws KeyPairRefused. */
  constructor(options: TlsOptions) {
    const { files, clock, logger } = options
    this.#options = options
    this.#certificate = new CertificateRenewal({
      files,
      // Open connections keep the certificate that they began with.
      onRenewed: ({ cert, key }) => this.#server?.setSecureContext({ cert, key, minVersion: MIN_VERSION }),
      clock,
      logger,
    })
  }

  createServer(options: ServerOptions, onRequest: RequestListener): Server {
    const { cert, key } = this.#certificate.current
    const { handshakeTimeout, logger } = this.#options
    const server = https.createServer({ ...options, cert, key, minVersion: MIN_VERSION, handshakeTimeout }, onRequest)
    // By default Node passes a failed handshake on as a request that cannot be parsed, but nobody can read an answer.
    server.removeAllListeners('tlsClientError').on('tlsClientError', (error: NodeJS.ErrnoException, socket: Socket) => {
      // A client that left: also what a health check of a proxy does that only connects.
      if (error.code !== 'ECONNRESET') logger.info('broken TLS handshake', { reason: error.code ?? error.message })
      if (error.code === 'ERR_SSL_HTTP_REQUEST') this.#answerPlain(socket)
      else socket.destroy()
    })
    this.#server = server
    return server
  }

  /** Answers what begins the handshake of a connection; after it, `accept` gets the decrypted one. */
  install(server: Server, accept: (socket: Socket) => void): (socket: Socket) => void {
    const begin = server.listeners('connection')
    server.removeAllListeners('secureConnection').on('secureConnection', (socket: Socket) => {
      this.#handshakes.delete(addressesOf(socket))
      // As node:http sets it: a client may end its side after its request, though not in the handshake.
      socket.allowHalfOpen = true
      accept(socket)
    })
    return (socket) => {
      const addresses = addressesOf(socket)
      this.#handshakes.set(addresses, socket)
      socket.once('close', () => {
        if (this.#handshakes.get(addresses) === socket) this.#handshakes.delete(addresses)
      })
      for (const listener of begin) listener.call(server, socket)
    }
  }

  /** Below TLS, where a client without it reads. */
  #answerPlain(failed: Socket): void {
    const socket = this.#handshakes.get(addressesOf(failed)) ?? failed
    socket.end(rawAnswer(PLAIN_HTTP, newUuid()), () => socket.destroy())
  }

  /** They have no request yet, like idle connections. */
  closeHandshakes(): void {
    for (const socket of this.#handshakes.values()) socket.destroy()
  }

  /** Of the certificate in use, in ms. */
  get expiresAt(): number {
    return this.#certificate.current.expiresAt
  }

  start(): void {
    this.#certificate.start()
  }

  stop(): Promise<void> {
    return this.#certificate.stop()
  }
}

/** Whether the connection itself has TLS; behind a proxy only the proxy knows. */
export function isEncrypted(socket: Socket): boolean {
  return (socket as Partial<TLSSocket>).encrypted === true
}

/** The same for a connection and for its decrypted form, and for no two connections. */
function addressesOf({ remoteAddress, remotePort, localAddress }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`
}

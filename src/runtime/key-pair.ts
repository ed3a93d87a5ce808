// A certificate and its private key, read from files and checked: a pair that TLS could not use is refused with what to do.

import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'

export interface KeyPairFiles {
  /** PEM: the certificate of the server, then those in between. */
  readonly cert: string
  readonly key: string
}

export interface KeyPair {
  readonly cert: Buffer
  readonly key: Buffer
  /** SHA-256 of the server's certificate. */
  readonly fingerprint: string
  /** When it expires, in ms. */
  readonly expiresAt: number
}

/** One sentence for each problem. */
export class KeyPairRefused extends Error {
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(problems.join(' '))
    this.name = 'KeyPairRefused'
    this.problems = problems
  }
}

export function readKeyPair(files: KeyPairFiles): KeyPair {
  const problems: string[] = []
  const attempt = <T>(use: () => T, problem: string): T | null => {
    try {
      return use()
    } catch (error) {
      // Of a file that cannot be read, why; OpenSSL's words explain nothing.
      const { code, syscall } = error as NodeJS.ErrnoException
      problems.push(syscall === undefined ? `${problem}.` : `${problem} (${code}).`)
      return null
    }
  }
  const cert = attempt(() => readFileSync(files.cert), `INTRAY_TLS_CERT: ${files.cert} cannot be read`)
  const key = attempt(() => readFileSync(files.key), `INTRAY_TLS_KEY: ${files.key} cannot be read`)
  const parsedCert =
    cert && attempt(() => new X509Certificate(cert), `INTRAY_TLS_CERT: ${files.cert} is no certificate in PEM`)
  const parsedKey =
    key &&
    attempt(() => createPrivateKey(key), `INTRAY_TLS_KEY: ${files.key} is no private key in PEM without a passphrase`)
  if (cert && key && parsedCert && parsedKey) {
    if (fits(parsedCert, parsedKey)) {
      attempt(
        () => createSecureContext({ cert, key }),
        `INTRAY_TLS_CERT: TLS cannot use the certificates in ${files.cert}`,
      )
    } else {
      problems.push(`INTRAY_TLS_KEY: ${files.key} is the key of another certificate than ${files.cert}.`)
    }
    if (problems.length === 0)
      return { cert, key, fingerprint: parsedCert.fingerprint256, expiresAt: Date.parse(parsedCert.validTo) }
  }
  throw new KeyPairRefused(problems)
}

function fits(cert: X509Certificate, key: KeyObject): boolean {
  return cert.checkPrivateKey(key)
}

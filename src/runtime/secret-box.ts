// Seals secrets that must be used again in clear, such as the key of a signature: AES-256-GCM under a key of its own for each
// purpose. What was sealed for one row does not open for another: the row's identity is authenticated with it.

import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'

export const SECRETS_KEY_BYTES = 32

/** What a secret is for. Never change one: what was sealed for it would no longer open. */
export type SecretPurpose = 'hook' | 'endpoint'

/** A sealed secret begins with it; another number would be another layout. */
const VERSION = 1
const NONCE_BYTES = 12
const TAG_BYTES = 16
/** Random nonces are safe for 2^32 secrets under one key, far more than a database has. */
const CIPHER = 'aes-256-gcm'

/** The secret was sealed under another key or for another row, or its bytes were changed. */
export class SecretUnreadable extends Error {
  constructor() {
    super('A sealed secret does not open with the key of secrets in use.')
    this.name = 'SecretUnreadable'
  }
}

export class SecretBox {
  readonly #key: Uint8Array
  readonly #derived = new Map<SecretPurpose, Buffer>()

  constructor(key: Uint8Array) {
    if (key.byteLength !== SECRETS_KEY_BYTES) throw new Error(`a key of secrets has ${SECRETS_KEY_BYTES} bytes`)
    this.#key = key
  }

  /** `row`: the identity of the row that keeps it, such as a key id. */
  seal(purpose: SecretPurpose, row: string, secret: string): Uint8Array {
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv(CIPHER, this.#keyOf(purpose), nonce, { authTagLength: TAG_BYTES })
    cipher.setAAD(Buffer.from(row))
    const sealed = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()])
    return Buffer.concat([Buffer.of(VERSION), nonce, sealed, cipher.getAuthTag()])
  }

  /** Throws SecretUnreadable. */
  open(purpose: SecretPurpose, row: string, sealed: Uint8Array): string {
    if (sealed.byteLength < 1 + NONCE_BYTES + TAG_BYTES || sealed[0] !== VERSION) throw new SecretUnreadable()
    const end = sealed.byteLength - TAG_BYTES
    const nonce = sealed.subarray(1, 1 + NONCE_BYTES)
    const decipher = createDecipheriv(CIPHER, this.#keyOf(purpose), nonce, { authTagLength: TAG_BYTES })
    decipher.setAAD(Buffer.from(row))
    decipher.setAuthTag(sealed.subarray(end))
    try {
      const opened = decipher.update(sealed.subarray(1 + NONCE_BYTES, end))
      return Buffer.concat([opened, decipher.final()]).toString('utf8')
    } catch {
      throw new SecretUnreadable()
    }
  }

  #keyOf(purpose: SecretPurpose): Buffer {
    let key = this.#derived.get(purpose)
    if (!key) {
      key = Buffer.from(hkdfSync('sha256', this.#key, '', `intray ${purpose}`, SECRETS_KEY_BYTES))
      this.#derived.set(purpose, key)
    }
    return key
  }
}

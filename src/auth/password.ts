// Hashes and verifies operator passwords with scrypt: N=2^15, r=8, p=3 (32 MiB, about 0.3 s of one core), as OWASP
// recommends. One verification runs at a time, so that guessing cannot take the memory and threads that intake needs.

import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto'

const COST = { N: 2 ** 15, r: 8, p: 3, maxmem: 64 * 1024 * 1024 }
const SALT_BYTES = 16
const HASH_BYTES = 32
/** Verifications that may wait; further ones are refused. */
const MAX_WAITING = 8

export const PASSWORD_LENGTH = { min: 10, max: 256 } as const

export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES)
  const { N, r, p } = COST
  return ['scrypt', N, r, p, salt.toString('base64'), (await derive(password, salt, COST)).toString('base64')].join('$')
}

export class PasswordVerifier {
  #queue: Promise<unknown> = Promise.resolve()
  #waiting = 0

  get isBusy(): boolean {
    return this.#waiting > MAX_WAITING
  }

  /** Takes as long for an unknown operator, and then fails. Queued at once. */
  async matches(password: string, encodedOf: () => Promise<string | null>): Promise<boolean> {
    this.#waiting += 1
    const turn = this.#queue.then(async () => check(password, await encodedOf()))
    this.#queue = turn.catch(() => {})
    try {
      return await turn
    } finally {
      this.#waiting -= 1
    }
  }
}

async function check(password: string, encoded: string | null): Promise<boolean> {
  const [, N, r, p, salt = '', hash = ''] = encoded?.split('$') ?? []
  const cost = encoded === null ? COST : { ...COST, N: Number(N), r: Number(r), p: Number(p) }
  const derived = await derive(password, encoded === null ? NO_SALT : Buffer.from(salt, 'base64'), cost)
  const matches = timingSafeEqual(derived, encoded === null ? NO_HASH : Buffer.from(hash, 'base64'))
  return matches && encoded !== null
}

const NO_SALT = Buffer.alloc(SALT_BYTES)
const NO_HASH = Buffer.alloc(HASH_BYTES)

/** Unicode-normalized, so that composed and decomposed letters match. */
function derive(password: string, salt: Uint8Array, cost: typeof COST): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    scrypt(password.normalize('NFC'), salt, HASH_BYTES, cost, (error, key) => (error ? reject(error) : resolve(key)))
  })
}

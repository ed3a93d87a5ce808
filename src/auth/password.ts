// Passwords of operators, by scrypt: 2^15 blocks of 8, three times over (32 MiB, about 0.3 s of one core), which is what
// OWASP asks for. One is worked on at a time: guessing must take neither the memory nor the threads that messages need.

import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto'

const COST = { N: 2 ** 15, r: 8, p: 3, maxmem: 64 * 1024 * 1024 }
const SALT_BYTES = 16
const HASH_BYTES = 32
/** Those that wait behind the one at work; more are turned away. */
const MAX_WAITING = 8

export const PASSWORD_LENGTH = { min: 10, max: 256 } as const

export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES)
  const { N, r, p } = COST
  return ['scrypt', N, r, p, salt.toString('base64'), (await derive(password, salt, COST)).toString('base64')].join('$')
}

export class PasswordCheck {
  #queue: Promise<unknown> = Promise.resolve()
  #waiting = 0

  get isBusy(): boolean {
    return this.#waiting > MAX_WAITING
  }

  /** Without a hash to compare with it takes as long and says no. The place in the queue is taken at once. */
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

/** Composed and decomposed letters are one password. */
function derive(password: string, salt: Uint8Array, cost: typeof COST): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    scrypt(password.normalize('NFC'), salt, HASH_BYTES, cost, (error, key) => (error ? reject(error) : resolve(key)))
  })
}

// Where the key of sealed secrets is: in the settings, or in a file of mode 600 beside a SQLite database, which is made when
// the first secret is sealed. A file that was lost is not replaced while secrets are sealed under it.

import { randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, linkSync, openSync, readFileSync, unlinkSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { SecretBox, SECRETS_KEY_BYTES } from './secret-box.ts'

/** The key is missing or cannot be read. The message says what to do. */
export class SecretsKeyMissing extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'SecretsKeyMissing'
  }
}

export interface SecretsOptions {
  /** The key from the settings; null: not set. */
  readonly key: Uint8Array | null
  /** The key file beside the database; null: the database is on a server, and the setting is needed. */
  readonly file: string | null
}

const NOT_SET =
  'INTRAY_SECRETS_KEY is not set, and secrets of hooks and endpoints are sealed under it. Make a key (openssl rand -base64 32), ' +
  'set it for every server and command of this database, and keep a copy apart from backups.'

export class Secrets {
  readonly #options: SecretsOptions
  #box: SecretBox | null = null

  constructor(options: SecretsOptions) {
    this.#options = options
  }

  /** Where the key comes from, for messages to the operator. */
  get source(): string {
    return this.#options.key === null && this.#options.file !== null ? this.#options.file : 'INTRAY_SECRETS_KEY'
  }

  /** To open what was sealed. Throws SecretsKeyMissing. */
  box(): SecretBox {
    this.#box ??= this.#find()
    if (this.#box) return this.#box
    throw new SecretsKeyMissing(this.#options.file === null ? NOT_SET : lostFile(this.#options.file))
  }

  /**
   * To seal. Makes the key file if there is none, unless `hasSealed` finds a secret that was sealed before: a new key would make
   * the lost one harder to put back. Throws SecretsKeyMissing.
   */
  async boxForSealing(hasSealed: () => Promise<boolean>): Promise<SecretBox> {
    const { file } = this.#options
    this.#box ??= this.#find()
    if (this.#box === null && file !== null && !(await hasSealed())) {
      makeKeyFile(file)
      this.#box = this.#find()
    }
    return this.box()
  }

  #find(): SecretBox | null {
    const { key, file } = this.#options
    if (key !== null) return new SecretBox(key)
    const text = file === null ? null : readKeyFile(file)
    if (text === null) return null
    const found = parseSecretsKey(text)
    if (found === null) throw new SecretsKeyMissing(`${file} holds no key of secrets. Put back the file from its copy.`)
    return new SecretBox(found)
  }
}

/** 32 bytes as base64, base64url or hexadecimal digits; null for anything else. */
export function parseSecretsKey(text: string): Uint8Array | null {
  const trimmed = text.trim()
  if (/^[0-9a-f]{64}$/i.test(trimmed)) return Buffer.from(trimmed, 'hex')
  if (!/^[0-9A-Za-z+/_-]{43}=?$/.test(trimmed)) return null
  const key = Buffer.from(trimmed, 'base64')
  return key.length === SECRETS_KEY_BYTES ? key : null
}

function lostFile(file: string): string {
  return (
    `The key of secrets is missing: put back ${file} from its copy, or set INTRAY_SECRETS_KEY to its content. Without it, hooks and ` +
    'endpoints that were made before have to be made again.'
  )
}

function readKeyFile(file: string): string | null {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return null
    throw new SecretsKeyMissing(`The key of secrets cannot be read from ${file} (${code}). Allow this user to read it.`)
  }
}

/** Written and synced under another name first: two processes that start together see one whole key. */
function makeKeyFile(file: string): void {
  const part = `${file}.${randomBytes(6).toString('hex')}`
  try {
    const handle = openSync(part, 'wx', 0o600)
    try {
      writeSync(handle, `${randomBytes(SECRETS_KEY_BYTES).toString('base64')}\n`)
      fsyncSync(handle)
    } finally {
      closeSync(handle)
    }
    try {
      linkSync(part, file)
    } catch (error) {
      // Another process made it meanwhile.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    } finally {
      unlinkSync(part)
    }
    syncFolder(dirname(file))
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw new SecretsKeyMissing(`The key of secrets could not be written to ${file}: ${code ?? message}.`)
  }
}

function syncFolder(folder: string): void {
  const handle = openSync(folder, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}

// Uses a renewed certificate without a restart: follows the files of the pair, and passes on each new pair that works. A pair that
// does not work is logged once, and the server keeps the one that it has.
//
// Changes in the folders are noticed at once, also where a link is replaced; a comparison every few seconds finds those that the
// system does not report, as on network file systems and behind links into other folders.

import { type FSWatcher, statSync, watch } from 'node:fs'
import { dirname } from 'node:path'
import { type Clock, isoTime } from '../../runtime/clock.ts'
import { type KeyPair, type KeyPairFiles, KeyPairRefused, readKeyPair } from '../../runtime/key-pair.ts'
import { errorText, type Logger } from '../../runtime/log.ts'
import { PeriodicTask, type Service } from '../../runtime/service.ts'

const COMPARE_EVERY_MS = 5000
/** Certificate and key are replaced one after the other. */
const SETTLE_MS = 200

export interface CertificateRenewalOptions {
  readonly files: KeyPairFiles
  readonly onRenewed: (pair: KeyPair) => void
  readonly clock: Clock
  readonly logger: Logger
  readonly compareEveryMs?: number
}

export class CertificateRenewal implements Service {
  readonly #options: CertificateRenewalOptions
  readonly #comparison: PeriodicTask
  #watchers: FSWatcher[] = []
  #settling: NodeJS.Timeout | null = null
  #current: KeyPair
  /** State of the files when they were last read, whether the pair worked or not. */
  #seen: string

  /** Throws KeyPairRefused if the first pair does not work. */
  constructor(options: CertificateRenewalOptions) {
    this.#options = options
    this.#seen = stateOf(options.files)
    this.#current = readKeyPair(options.files)
    this.#comparison = new PeriodicTask(options.compareEveryMs ?? COMPARE_EVERY_MS, async () => this.compare())
  }

  /** The pair in use. */
  get current(): KeyPair {
    return this.#current
  }

  start(): void {
    this.#warnIfExpired()
    const { cert, key } = this.#options.files
    this.#watchers = [...new Set([dirname(cert), dirname(key)])].flatMap((folder) => this.#watch(folder) ?? [])
    this.#comparison.start()
  }

  async stop(): Promise<void> {
    for (const watcher of this.#watchers) watcher.close()
    if (this.#settling) clearTimeout(this.#settling)
    await this.#comparison.stop()
  }

  /** Reads the files if they have changed. */
  compare(): void {
    const { files, logger, onRenewed } = this.#options
    const state = stateOf(files)
    if (state === this.#seen) return
    this.#seen = state
    try {
      const pair = readKeyPair(files)
      if (pair.cert.equals(this.#current.cert) && pair.key.equals(this.#current.key)) return
      onRenewed(pair)
      this.#current = pair
      logger.info('the certificate was renewed', { fingerprint: pair.fingerprint, expires_at: isoTime(pair.expiresAt) })
      this.#warnIfExpired()
    } catch (error) {
      const reason = error instanceof KeyPairRefused ? error.message : errorText(error)
      logger.error('the new certificate cannot be used; keeping the old one', { reason })
    }
  }

  #warnIfExpired(): void {
    const { clock, logger } = this.#options
    const { expiresAt } = this.#current
    if (expiresAt <= clock.now())
      logger.warn('the certificate has expired: clients refuse it', { expires_at: isoTime(expiresAt) })
  }

  /** Null where the system watches nothing: then the comparison finds the change. */
  #watch(folder: string): FSWatcher | null {
    try {
      const watcher = watch(folder, { persistent: false }, () => {
        this.#settling ??= setTimeout(() => {
          this.#settling = null
          this.compare()
        }, SETTLE_MS)
      })
      return watcher.on('error', () => watcher.close())
    } catch {
      return null
    }
  }
}

/** Follows links. A file that is missing or out of reach has a state too. */
function stateOf({ cert, key }: KeyPairFiles): string {
  return [cert, key].map(stateOfFile).join(' | ')
}

function stateOfFile(file: string): string {
  try {
    const { ino, size, mtimeNs } = statSync(file, { bigint: true })
    return `${ino} ${size} ${mtimeNs}`
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unknown'
  }
}

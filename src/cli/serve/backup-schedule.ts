// Scheduled backups of a server: runs `./intray backup FOLDER --keep N` as a process of its own, whenever the last backup is
// older than the interval. The database keeps when it began, so a restart of the server delays or repeats nothing.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Config } from '../../config.ts'
import type { Clock } from '../../runtime/clock.ts'
import { errorText, type Logger } from '../../runtime/log.ts'
import { PeriodicTask, type Service } from '../../runtime/service.ts'
import type { RecoveryStore } from '../../store/contract/recovery.ts'

/** How often it looks; also the delay after a failure. */
const LOOK_EVERY_MS = 60_000
const LOGGED_CHARACTERS = 1000

export interface BackupScheduleOptions {
  readonly config: Pick<Config, 'backupTo' | 'backupEvery' | 'backupKeep' | 'databaseUrl'>
  readonly recovery: Pick<RecoveryStore, 'lastBackupAt'>
  readonly clock: Clock
  readonly logger: Logger
}

export class BackupSchedule implements Service {
  readonly #options: BackupScheduleOptions
  readonly #timer: PeriodicTask
  #child: ChildProcess | null = null
  #isStopped = false

  constructor(options: BackupScheduleOptions) {
    this.#options = options
    this.#timer = new PeriodicTask(Math.min(LOOK_EVERY_MS, options.config.backupEvery), () => this.#look())
  }

  start(): void {
    if (this.#options.config.backupTo === null) return
    // Also when the server ends without a stop.
    process.once('exit', () => this.#child?.kill())
    this.#timer.start()
  }

  /** Ends a backup in progress: the next one removes its part. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#child?.kill()
    await this.#timer.stop()
  }

  async #look(): Promise<void> {
    const { config, recovery, clock, logger } = this.#options
    try {
      const last = await recovery.lastBackupAt()
      if (!this.#isStopped && (last === null || clock.now() - last >= config.backupEvery)) await this.#run()
    } catch (error) {
      logger.error('a scheduled backup failed', { error: errorText(error) })
    }
  }

  async #run(): Promise<void> {
    const { config, logger } = this.#options
    const { INTRAY_DATABASE_URL_FILE: _, ...env } = process.env
    const args = [process.argv[1]!, 'backup', config.backupTo!, '--keep', String(config.backupKeep)]
    const child = spawn(process.execPath, args, {
      env: { ...env, INTRAY_DATABASE_URL: config.databaseUrl },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#child = child
    let printed = ''
    const note = (text: Buffer) => {
      printed = (printed + text).slice(-LOGGED_CHARACTERS)
    }
    child.stdout.on('data', note)
    child.stderr.on('data', note)
    const [code] = (await once(child, 'close')) as [number | null]
    this.#child = null
    if (this.#isStopped) return
    if (code === 0) logger.info('a scheduled backup was written', { said: printed.trim() })
    else logger.error('a scheduled backup failed', { code, said: printed.trim() })
  }
}

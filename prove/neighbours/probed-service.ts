// A service on a copy of the filled database, with the probe that measures the turns of its main thread.

import { existsSync, mkdtempSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ProofContext } from '../proof.ts'
import { Service } from '../service.ts'
import type { FilledDatabase } from './filled-database.ts'

const PROBE = fileURLToPath(new URL('./turn-probe.ts', import.meta.url))
const UNFINISHED_MS = 1000

export interface Turn {
  /** When it ended. */
  readonly at: number
  readonly ms: number
  /** Of these, how long the thread had a processor. */
  readonly computedMs?: number
  readonly cause?: string
}

export interface ProbedOptions {
  readonly database: FilledDatabase
  readonly launcher: string
  /** Modules that are loaded before the service, besides the probe. */
  readonly imports?: readonly string[]
}

export class ProbedService {
  readonly service: Service
  readonly #turnsFile: string
  readonly #drop: () => Promise<void>

  private constructor(service: Service, turnsFile: string, drop: () => Promise<void>) {
    this.service = service
    this.#turnsFile = turnsFile
    this.#drop = drop
  }

  static async start(context: ProofContext, options: ProbedOptions): Promise<ProbedService> {
    const { database, launcher, imports = [] } = options
    const { url, drop } = await database.copy()
    const turnsFile = join(mkdtempSync(join(context.folder, 'turns-')), 'turns')
    const service = new Service(context, { databaseUrl: url, env: database.env, launcher })
    const nodeOptions = [PROBE, ...imports].map((path) => `--import ${path}`).join(' ')
    await service.start({ NODE_OPTIONS: nodeOptions, PROVE_TURNS: turnsFile })
    return new ProbedService(service, turnsFile, drop)
  }

  /** Those longer than 10 ms that have ended. */
  turns(): Turn[] {
    if (!existsSync(this.#turnsFile)) return []
    const lines = readFileSync(this.#turnsFile, 'utf8').split('\n')
    // The last one may be half written.
    return lines.slice(0, -1).map((line) => JSON.parse(line) as Turn)
  }

  /** The current turn, if it is a long one. Includes the time in which other processes had the processor. */
  currentTurn(): Turn | null {
    const at = Date.now()
    const ms = at - Number(readFileSync(`${this.#turnsFile}.beat`, 'latin1'))
    return ms < UNFINISHED_MS ? null : { at, ms, cause: 'and not over' }
  }

  async end(): Promise<void> {
    await this.service.kill()
    await this.#drop()
  }
}

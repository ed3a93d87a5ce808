// Runs one proof: gives it its folder, its databases and its seed, bounds its time, undoes what it did to the machine, and
// says whether it held.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type FsyncCost, measureFsync } from '../bench/machine.ts'
import { type Proof, type ProofContext, type ProofResult, type StoreName, WRONG } from './proof.ts'
import { seededRandom } from './random.ts'
import { type Databases, openDatabases } from './stores.ts'

export interface RunOptions {
  readonly seed: number
  readonly cycles: number
  readonly store: StoreName
  readonly progress: (line: string) => void
  readonly isTimed: boolean
  readonly only?: string
  readonly given?: Readonly<Record<string, string>>
  /** Where its folder is made. */
  readonly parentFolder?: string
  /** A PostgreSQL that runs already. */
  readonly postgresUrl?: string
}

export interface ProofReport extends ProofResult {
  readonly name: string
  readonly seed: number
  readonly cycles: number
  readonly store: StoreName
  readonly date: string
  readonly tookSeconds: number
  readonly fsync: FsyncCost
  readonly problems: readonly string[]
}

const FSYNCS = 200

export class ProofRun {
  readonly #proof: Proof
  readonly #options: RunOptions
  readonly #undo: (() => void | Promise<void>)[] = []
  #closed: Promise<void> | null = null

  constructor(proof: Proof, options: RunOptions) {
    this.#proof = proof
    this.#options = options
  }

  /** Rejects if the proof could not be carried out; resolves with what it found otherwise. */
  async run(): Promise<ProofReport> {
    const {
      seed,
      cycles,
      store,
      progress,
      isTimed,
      only = '',
      given = {},
      parentFolder = tmpdir(),
      postgresUrl,
    } = this.#options
    const folder = mkdtempSync(join(parentFolder, 'intray-prove-'))
    this.#undo.push(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))
    let databases: Promise<Databases> | null = null
    const context: ProofContext = {
      seed,
      cycles,
      store,
      folder,
      only,
      given,
      isTimed,
      progress,
      random: seededRandom(seed),
      onCleanup: (undo) => this.#undo.push(undo),
      newDatabase: async () => {
        databases ??= openDatabases(store, folder, postgresUrl).then((opened) => {
          this.#undo.push(() => opened.close())
          return opened
        })
        return (await databases).newUrl()
      },
    }
    const startedAt = Date.now()
    const fsync = measureFsync(folder, FSYNCS)
    try {
      const result = await this.#proof.run(context)
      return {
        ...result,
        notes: only === '' ? result.notes : [`Not all of it: --only "${only}".`, ...result.notes],
        name: this.#proof.name,
        seed,
        cycles,
        store,
        date: new Date(startedAt).toISOString(),
        tookSeconds: (Date.now() - startedAt) / 1000,
        fsync,
        problems: problemsOf(result),
      }
    } finally {
      await this.close()
    }
  }

  /** Undoes everything, the newest first. Calling it again is fine. */
  close(): Promise<void> {
    this.#closed ??= (async () => {
      for (let undo = this.#undo.pop(); undo; undo = this.#undo.pop()) {
        await Promise.resolve()
          .then(undo)
          .catch((error: unknown) => this.#options.progress(`left behind: ${String(error)}`))
      }
    })()
    return this.#closed
  }
}

/** Why a result proves nothing, or the opposite; empty if the proof held. */
export function problemsOf({ counts, broken, controls }: ProofResult): string[] {
  return [
    ...WRONG.filter((what) => counts[what] > 0).map((what) => `${counts[what]} ${what}`),
    ...broken,
    ...(counts.faults > 0 ? [] : ['no fault was injected']),
    ...(counts.acknowledged > 0 ? [] : ['nothing was acknowledged']),
    ...(controls.length > 0 ? [] : ['there was no control']),
    ...controls.filter(({ failed }) => !failed).map(({ about }) => `the control was not found out: ${about}`),
  ]
}

// What `--beside` runs in a loop on the database of A while A is measured, and not on that of B: with `--against HEAD` the ratio is
// what it costs. Promises: nothing of it runs while B is measured; if a turn of the loop fails, so does the run.

import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { NO_RETENTION } from '../../src/model/retention.ts'
import type { Store } from '../../src/store/contract/store.ts'
import { openStore } from '../../src/store/open.ts'
import { item } from '../../test/store/rows.ts'
import { until } from '../../test/support/until.ts'
import type { Intray } from '../contestants/intray.ts'

/** One turn may take this long. */
const TURN_LIMIT_MS = 300_000
/** Tenants with old messages: each turn of retention deletes those of one of them. */
const OLD_TENANTS = 200
const OLD_MESSAGES = 1000
const OLD_AT = Date.parse('2025-01-01T00:00:00.000Z')
const OLD_TEXT = 'x'.repeat(250)

/** Runs in a loop; `n` counts its turns. */
interface Beside {
  /** INTRAY_* settings of A and B. */
  readonly settings: Readonly<Record<string, string>>
  /** Once, before anything is measured. */
  readonly prepare: (intray: Intray) => Promise<unknown>
  readonly turn: (intray: Intray, folder: string, n: number) => Promise<unknown>
}

const backup: Beside = {
  settings: {},
  prepare: async () => {},
  turn: (intray, folder) => intray.cli(['backup', join(folder, 'backup'), '--json'], TURN_LIMIT_MS),
}

const retention: Beside = {
  settings: { INTRAY_RETENTION_EVERY: '1s' },
  prepare: ({ databaseUrl }) =>
    withStore(databaseUrl, async (store) => {
      for (let n = 0; n < OLD_TENANTS; n++) {
        const old = { ...oldTenant(n), receivedAt: OLD_AT, body: { text: OLD_TEXT } }
        await store.journal.append(Array.from({ length: OLD_MESSAGES }, () => item(old)))
      }
    }),
  turn: ({ databaseUrl }, _folder, n) =>
    withStore(databaseUrl, async (store) => {
      const tenant = oldTenant(n)
      const all = { tenant, afterId: 0, throughId: await store.events.watermark(), limit: 1 }
      if (n >= OLD_TENANTS || (await store.transfer.rows(all)).length === 0) {
        throw new Error(`after ${n} turns no old messages are left: measure fewer or shorter rounds`)
      }
      await store.retention.setRule({ ...NO_RETENTION, tenant, events: 1, unprocessed: 'purge' })
      await until('the old messages are gone', async () => (await store.transfer.rows(all)).length === 0)
    }),
}

const BESIDES = { backup, retention } satisfies Readonly<Record<string, Beside>>
export type BesideName = keyof typeof BESIDES
export const BESIDE_NAMES = Object.keys(BESIDES) as BesideName[]

const oldTenant = (n: number) => ({ accountId: 1, companyId: 1000 + n })

async function withStore(url: string, use: (store: Store) => Promise<void>): Promise<void> {
  const store = await openStore(url, { role: 'tool' })
  try {
    await use(store)
  } finally {
    await store.close()
  }
}

export function settingsBeside(names: readonly BesideName[]): Record<string, string> {
  return Object.assign({}, ...names.map((name) => BESIDES[name].settings))
}

/** What runs beside the measurements of one server. */
export class WorkBeside {
  readonly #names: readonly BesideName[]
  readonly #intray: Intray
  readonly #folder: string
  readonly #turns: Partial<Record<BesideName, number>> = {}

  constructor(names: readonly BesideName[], intray: Intray, folder: string) {
    this.#names = names
    this.#intray = intray
    this.#folder = folder
  }

  async prepare(): Promise<void> {
    for (const name of this.#names) await BESIDES[name].prepare(this.#intray)
  }

  /** Runs turn after turn until the measurement is over, and waits for the last ones. Returns how many there were. */
  async during<T>(measure: () => Promise<T>): Promise<{ readonly measured: T; readonly turns: number }> {
    const before = this.#count()
    const state = { isOver: false }
    const loops = Promise.all(this.#names.map((name) => this.#loop(name, state)))
    loops.catch(() => {})
    try {
      const measured = await measure()
      state.isOver = true
      await loops
      return { measured, turns: this.#count() - before }
    } finally {
      state.isOver = true
    }
  }

  async #loop(name: BesideName, state: { readonly isOver: boolean }): Promise<void> {
    while (!state.isOver) {
      const folder = mkdtempSync(join(this.#folder, 'beside-'))
      try {
        const n = this.#turns[name] ?? 0
        await BESIDES[name].turn(this.#intray, folder, n)
        this.#turns[name] = n + 1
      } finally {
        rmSync(folder, { recursive: true })
      }
    }
  }

  #count(): number {
    return Object.values(this.#turns).reduce((sum, count) => sum + count, 0)
  }
}

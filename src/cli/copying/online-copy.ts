// Copies a database into another one while its senders and processors go on.
//
//   first round: every row ─► rounds: rows added or changed meanwhile ─► counted ─► frozen: the rest ─► finished
//
// A round is as long as what came in during the one before, so rounds get shorter until the rest fits into the pause. Each page is
// read back from the target and compared by SHA-256; rows are counted on both sides. The index of the copy is built between rounds.

import {
  type CopyRow,
  type CopySide,
  type CopyState,
  type CopyTable,
  keyOf,
  type NotedChange,
} from '../../store/contract/copy.ts'
import type { WordLimits } from '../../store/contract/indexing.ts'
import { CommandError } from '../command.ts'
import { digestOf } from './copy-digest.ts'
import { inSteps, note } from '../output.ts'

/** Changes that one step carries out. Some rows have 64 KiB. */
const CHANGES = 500
/** A round ends after this long even if changes are still coming. */
const MAX_CHANGES_MS = 60_000
/** Rounds in a row that are hardly shorter than the one before, until the copy is given up. */
const MAX_SLOW_ROUNDS = 5
/** How often the source hears that its copy is alive. */
const SIGN_OF_LIFE_MS = 10_000

export interface OnlineCopyOptions {
  readonly source: CopySide
  readonly target: CopySide
  readonly limits: WordLimits
  /** The last round before the freeze takes at most half of this. */
  readonly maxPauseMs: number
}

export interface CopyReport {
  /** `rows`: null if the table is too large to count. */
  readonly tables: readonly { readonly table: string; readonly rows: number | null }[]
  readonly rounds: number
  /** For how long writers waited. */
  readonly pausedMs: number
}

/** Rows on both sides, counted once and kept from there on. */
interface Counts {
  source: number
  target: number
}

/** Null if this copy is already complete. */
export async function copyOnline(options: OnlineCopyOptions): Promise<CopyReport | null> {
  const { source, target } = options
  const sourceState = await source.state()
  if (sourceState && !sourceState.finished) {
    throw new CommandError('The source is itself the target of an unfinished copy. Finish that one first.')
  }
  const identity = await source.identity()
  if ((await target.identity()).databaseUuid === identity.databaseUuid) {
    throw new CommandError('--from and --to are the same database. Give another --to.')
  }
  const found = await target.begin(identity.databaseUuid)
  if (found.finished) return null
  const live = (await source.noting())?.mark ?? null
  // What was copied before is of use only if every change since then was noted.
  const state = found.noting !== null && found.noting === live ? found : await beginAgain(options)
  return new OnlineCopy(options, identity.databaseUuid, state).run()
}

async function beginAgain({ source, target }: OnlineCopyOptions): Promise<CopyState> {
  const mark = await source.startNoting()
  try {
    return await target.restart(await source.identity(), mark)
  } catch (error) {
    await stopNoting(source, mark)
    throw error
  }
}

/** Unless another copy has begun meanwhile. A failure must not hide what ended the copy. */
async function stopNoting(source: CopySide, mark: string): Promise<void> {
  try {
    if ((await source.noting())?.mark === mark) await source.stopNoting()
  } catch (error) {
    note(
      `The source still notes what changes, for this copy (${(error as Error).message}). Copy again, or: ./intray copy --release URL`,
    )
  }
}

class OnlineCopy {
  readonly #options: OnlineCopyOptions
  readonly #sourceUuid: string
  readonly #mark: string
  readonly #positions: Map<string, CopyRow | null>
  #isWhole: boolean
  #batches: number
  #counts: Map<string, Counts | null> | null = null
  #seenAt = performance.now()

  constructor(options: OnlineCopyOptions, sourceUuid: string, state: CopyState) {
    this.#options = options
    this.#sourceUuid = sourceUuid
    this.#mark = state.noting!
    this.#positions = new Map(Object.entries(state.positions))
    this.#isWhole = state.isWhole
    this.#batches = state.batches
  }

  async run(): Promise<CopyReport> {
    const { source, target } = this.#options
    let isFrozen = false
    try {
      const rounds = await this.#catchUp()
      const pausedAt = performance.now()
      await source.freeze(async () => {
        await source.keepNoting(this.#mark)
        await this.#round()
        this.#compareCounts()
      })
      isFrozen = true
      await target.finish(await source.identity())
      const pausedMs = Math.round(performance.now() - pausedAt)
      await this.#buildIndex()
      const tables = source.tables.map(({ name }) => ({ table: name, rows: this.#counts?.get(name)?.target ?? null }))
      return { tables, rounds, pausedMs }
    } finally {
      // Of a frozen source that is not finished, the same command copies the rest at once.
      const isOver = !isFrozen || (await target.state())?.finished
      if (isOver) await stopNoting(source, this.#mark)
    }
  }

  /** Rounds until the rest fits into the pause. */
  async #catchUp(): Promise<number> {
    let lastMs = Number.POSITIVE_INFINITY
    let slow = 0
    for (let round = 1; ; round++) {
      const startedAt = performance.now()
      await this.#round()
      await this.#buildIndex()
      const ms = performance.now() - startedAt
      if (ms <= this.#options.maxPauseMs / 2) {
        if (this.#counts !== null) return round
        await this.#count()
        slow = 0
      } else if (ms > 0.9 * lastMs) slow += 1
      if (slow === MAX_SLOW_ROUNDS) {
        throw new CommandError(
          `The copy does not catch up: what changes in the source in ${seconds(ms)} s takes as long to copy. The source was not ` +
            'frozen. Run the copy again when there is less traffic, or allow a longer pause: --max-pause 2m.',
        )
      }
      lastMs = ms
    }
  }

  /** Rows that were added or changed since the last round. */
  async #round(): Promise<void> {
    const { source, target } = this.#options
    // Ids of events are read after those of resends: the event of each resend is among them.
    const { resends } = await source.watermark()
    const { events } = await source.watermark()
    for (const table of source.tables) {
      if (table.follows) await this.#copyTable(table, table.follows === 'events' ? events : resends)
      else if (!this.#isWhole) await this.#copyTable(table)
    }
    if (!this.#isWhole) await target.setWhole(this.#sourceUuid)
    this.#isWhole = true
    await this.#copyChanges()
  }

  async #copyTable(table: CopyTable, upTo?: number): Promise<void> {
    const { source, target } = this.#options
    const isFirst = !this.#isWhole
    const total = isFirst ? await source.count(table) : 0
    let done = isFirst && this.#positions.get(table.name) ? await target.count(table) : 0
    await inSteps('copy', async (say) => {
      const progress = () =>
        isFirst
          ? say(`${table.name} ${done} of ${total} (${Math.floor((100 * done) / Math.max(total, 1))} %)`)
          : undefined
      progress()
      for (;;) {
        const after = this.#positions.get(table.name) ?? null
        const rows = await source.read(table, after, { upTo })
        const last = rows.at(-1)
        if (!last) break
        await target.write(this.#sourceUuid, table, after, rows)
        this.#positions.set(table.name, keyOf(table, last))
        await this.#compare(
          table,
          rows.map((row) => keyOf(table, row)),
          rows,
        )
        this.#add(table.name, rows.length, rows.length)
        done += rows.length
        progress()
        await this.#giveSignOfLife()
      }
    })
  }

  async #copyChanges(): Promise<void> {
    const { source } = this.#options
    const startedAt = performance.now()
    for (;;) {
      const changes = await source.changes(CHANGES)
      if (changes.length > 0) await this.#carryOut(changes)
      await this.#giveSignOfLife()
      if (changes.length < CHANGES || performance.now() - startedAt > MAX_CHANGES_MS) return
    }
  }

  async #carryOut(changes: readonly NotedChange[]): Promise<void> {
    const { source, target } = this.#options
    const changed = []
    for (const table of source.tables) {
      const keys = this.#keysOf(table, changes)
      if (keys.length > 0) changed.push({ table, keys, rows: await source.find(table, keys) })
    }
    const grown = await target.replace(this.#sourceUuid, this.#batches, changed)
    this.#batches += 1
    for (const [n, { table, keys, rows }] of changed.entries()) {
      await this.#compare(table, keys, rows)
      const counted = changes.filter((change) => change.table === table.name && !this.#isAhead(table, change.key))
      this.#add(
        table.name,
        counted.reduce((sum, change) => sum + change.rows, 0),
        grown[n]!,
      )
    }
    await source.forgetChanges(changes.map(({ id }) => id))
  }

  /** Each key once. */
  #keysOf(table: CopyTable, changes: readonly NotedChange[]): CopyRow[] {
    const own = changes.filter((change) => change.table === table.name && !this.#isAhead(table, change.key))
    return [...new Map(own.map(({ key }) => [textOf(key), key])).values()]
  }

  /** A row that comes later, as it is then. */
  #isAhead(table: CopyTable, key: CopyRow): boolean {
    return table.follows !== undefined && Number(key[0]) > Number(this.#positions.get(table.name)?.[0] ?? 0)
  }

  async #compare(table: CopyTable, keys: readonly CopyRow[], rows: readonly (CopyRow | null)[]): Promise<void> {
    const written = await this.#options.target.find(table, keys)
    if (digestOf(written) === digestOf(rows)) return
    throw new CommandError(
      `The copy differs from its source in ${table.name}: rows that were just written have another content. ` +
        'The source is unharmed and not frozen. Check the disk and the memory of the target, and copy again into an empty database.',
    )
  }

  #add(table: string, source: number, target: number): void {
    const counts = this.#counts?.get(table)
    if (!counts) return
    counts.source += source
    counts.target += target
  }

  /** What is noted and not carried out yet is not counted: it is added when it is. */
  async #count(): Promise<void> {
    const { source, target } = this.#options
    const counts = new Map<string, Counts | null>()
    await inSteps('count', async (say) => {
      for (const table of source.tables) {
        say(table.name)
        const upTo = table.follows ? Number(this.#positions.get(table.name)?.[0] ?? 0) : undefined
        const there = await source.countExactly(table, upTo)
        const here = await target.countExactly(table)
        counts.set(table.name, there && here && { source: there.rows - there.noted, target: here.rows })
        await this.#giveSignOfLife()
      }
    })
    this.#counts = counts
  }

  #compareCounts(): void {
    for (const [table, counts] of this.#counts ?? []) {
      if (!counts || counts.source === counts.target) continue
      throw new CommandError(
        `The copy differs from its source in ${table}: ${counts.target} rows instead of ${counts.source}. ` +
          'The source is unharmed and not frozen. Copy again into an empty database.',
      )
    }
  }

  async #buildIndex(): Promise<void> {
    const { target, limits } = this.#options
    await inSteps('index', async (say) => {
      for (;;) {
        const { lag, searchLag, clearing } = await target.index(limits)
        if (lag === 0 && searchLag === 0 && !clearing) break
        say(`${Math.max(lag, searchLag)} rows left`)
        await this.#giveSignOfLife()
      }
      while (await target.followPurges()) await this.#giveSignOfLife()
    })
  }

  async #giveSignOfLife(): Promise<void> {
    if (performance.now() - this.#seenAt < SIGN_OF_LIFE_MS) return
    this.#seenAt = performance.now()
    await this.#options.source.keepNoting(this.#mark)
  }
}

const seconds = (ms: number): string => (ms / 1000).toFixed(1)

const textOf = (key: CopyRow): string =>
  JSON.stringify(key.map((cell) => (cell instanceof Uint8Array ? Buffer.from(cell).toString('hex') : cell)))

// Ids of a table, given out inside a transaction: loaded at its start, saved at its end, never used again. What has arrived and is
// not filed yet has its ids with it; `sequences` need not be written for those.

import type { DatabaseSync } from 'node:sqlite'

export type SequenceName = 'events' | 'resends'

const SELECT_LAST = {
  events: `SELECT max(value, coalesce((SELECT last_id FROM arrivals WHERE first_id > 0 ORDER BY first_id DESC LIMIT 1), 0)) AS value
    FROM sequences WHERE name = 'events'`,
  resends: "SELECT value FROM sequences WHERE name = 'resends'",
}

/** The last id given out. */
export function readSequence(db: DatabaseSync, name: SequenceName): number {
  return lastIdIn(db.prepare(SELECT_LAST[name]).get(), name)
}

function lastIdIn(row: Record<string, unknown> | undefined, name: SequenceName): number {
  if (typeof row?.value !== 'number') throw new Error(`the sequence ${name} is missing`)
  return row.value
}

export interface Sequence {
  load(): void
  /** The id that the next one to ask would be given. */
  peek(): number
  take(): number
  /** Gives back everything from this id on: its rows were rolled back. */
  rewind(next: number): void
  /** Not needed where all ids went to arrivals. */
  save(): void
}

export function prepareSequence(db: DatabaseSync, name: SequenceName): Sequence {
  const select = db.prepare(SELECT_LAST[name])
  const update = db.prepare('UPDATE sequences SET value = ? WHERE name = ?')
  let last = 0
  return {
    load: () => {
      last = lastIdIn(select.get(), name)
    },
    peek: () => last + 1,
    take: () => ++last,
    rewind: (next) => {
      last = next - 1
    },
    save: () => {
      update.run(last, name)
    },
  }
}

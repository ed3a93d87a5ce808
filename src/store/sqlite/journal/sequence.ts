// Id sequences of the journal: loaded at the start of a transaction, saved at its end, never reused.

import type { DatabaseSync } from 'node:sqlite'

export type SequenceName = 'events' | 'resends'

const SELECT_LAST = 'SELECT value FROM sequences WHERE name = ?'
const SET_LAST = 'UPDATE sequences SET value = ? WHERE name = ?'

/** The last id given out. */
export function readSequence(db: DatabaseSync, name: SequenceName): number {
  return lastIdIn(db.prepare(SELECT_LAST).get(name), name)
}

function lastIdIn(row: Record<string, unknown> | undefined, name: SequenceName): number {
  if (typeof row?.value !== 'number') throw new Error(`the sequence ${name} is missing`)
  return row.value
}

export interface Sequence {
  load(): void
  /** The next id, without taking it. */
  peek(): number
  take(): number
  /** Gives back all ids from this one on: their rows were rolled back. */
  rewind(next: number): void
  save(): void
}

export function prepareSequence(db: DatabaseSync, name: SequenceName): Sequence {
  const select = db.prepare(SELECT_LAST)
  const update = db.prepare(SET_LAST)
  let last = 0
  let saved = 0
  return {
    load: () => {
      last = saved = lastIdIn(select.get(name), name)
    },
    peek: () => last + 1,
    take: () => ++last,
    rewind: (next) => {
      last = next - 1
    },
    save: () => {
      if (last !== saved) update.run(last, name)
    },
  }
}

/** For a copy, in a transaction of the caller. */
export function setSequence(db: DatabaseSync, name: SequenceName, value: number): void {
  db.prepare(SET_LAST).run(value, name)
}

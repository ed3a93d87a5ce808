// Ids of a table, given out inside a transaction: loaded at its start, saved at its end, never used again.

import type { DatabaseSync } from 'node:sqlite'

export interface Sequence {
  load(): void
  /** The id that `take` would give. */
  peek(): number
  take(): number
  /** Gives back everything from this id on: its rows were rolled back. */
  rewind(next: number): void
  save(): void
}

export function prepareSequence(db: DatabaseSync, name: 'events' | 'resends'): Sequence {
  const select = db.prepare('SELECT value FROM sequences WHERE name = ?')
  const update = db.prepare('UPDATE sequences SET value = ? WHERE name = ?')
  let loaded = 0
  let last = 0
  return {
    load: () => {
      loaded = last = Number(select.get(name)?.value)
    },
    peek: () => last + 1,
    take: () => ++last,
    rewind: (next) => {
      last = next - 1
    },
    save: () => {
      if (last !== loaded) update.run(last, name)
    },
  }
}

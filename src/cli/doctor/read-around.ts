// Reads a table of which some rows cannot be read, because their pages are damaged: everything before, behind and between them.
//
// Reads from the first row up to the damage, then from the last row down to it. What is left between may hold readable rows:
// it is divided in the middle of its keys, and read from there in both directions. A part ends when its keys cannot be
// divided, or when the probes are used up.

import {
  type CopyRow,
  type CopySide,
  type CopyTable,
  keyOf,
  type Stretch,
  type StretchRows,
} from '../../store/contract/copy.ts'
import { isBefore, joined, type KeyRange, middleOf } from './key-range.ts'

/** Reads that find nothing, in one table: 0.1 s on SQLite, some seconds on PostgreSQL. */
const MAX_PROBES = 20_000

/** A page in the place of another one would be read again and again. */
const OUT_OF_ORDER = 'rows are out of order'

interface Followed {
  readonly last: CopyRow | null
  readonly isDamaged: boolean
  readonly isOutOfOrder: boolean
}

export interface ReadAroundOptions {
  /** Called once for each part that cannot be read, in key order, at the end. */
  readonly onLost: (range: KeyRange, reason: string) => void
  /** An integer key above all others: the last part ends there. */
  readonly end?: number
}

export async function* readAround(
  side: Pick<CopySide, 'readStretch'>,
  table: CopyTable,
  { onLost, end }: ReadAroundOptions,
): AsyncGenerator<readonly CopyRow[]> {
  const lost: KeyRange[] = []
  let reason = ''
  let probes = 0

  /** Reads a stretch to its end or to the damage. Returns the key of its last row and the damage. */
  async function* follow(stretch: Stretch): AsyncGenerator<readonly CopyRow[], Followed> {
    let rest = stretch
    let last: CopyRow | null = null
    for (;;) {
      const { rows, damage }: StretchRows = await side.readStretch(table, rest)
      const newest = rows.at(-1)
      if (newest) {
        const key = keyOf(table, newest)
        const [from, to] = stretch.isBackwards ? [key, last] : [last, key]
        if (from && to && !isBefore(table, from, to)) {
          reason = OUT_OF_ORDER
          return { last, isDamaged: true, isOutOfOrder: true }
        }
        yield rows
        last = key
        rest = stretch.isBackwards
          ? { ...stretch, upTo: { key: last, isInclusive: false } }
          : { ...stretch, after: last }
      }
      if (damage !== null) reason = damage
      if (damage !== null || !newest) return { last, isDamaged: damage !== null, isOutOfOrder: false }
    }
  }

  /** Reads a part from its end. Its beginning is known to be damaged. Returns what is left. */
  async function* fromEnd(part: KeyRange, isOutOfOrder = false): AsyncGenerator<readonly CopyRow[], KeyRange | null> {
    const { last, isDamaged } = yield* follow({ ...part, isBackwards: true })
    const rest = last === null ? part : { ...part, upTo: { key: last, isInclusive: false } }
    if (isDamaged) return rest
    // Nothing else tells that rows are missing there.
    if (isOutOfOrder) lost.push(rest)
    return null
  }

  const whole = { after: null, upTo: end === undefined ? null : { key: [end], isInclusive: false } }
  const first = yield* follow({ ...whole, isBackwards: false })
  const left = first.isDamaged ? yield* fromEnd({ ...whole, after: first.last }, first.isOutOfOrder) : null
  // The largest parts first, as far as their place in the queue tells.
  const parts = left === null ? [] : [left]
  for (let part = parts.shift(); part !== undefined; part = parts.shift()) {
    const middle = probes < MAX_PROBES ? middleOf(table, part) : null
    if (middle === null) {
      lost.push(part)
      continue
    }
    probes += 2
    const lower = yield* fromEnd({ after: part.after, upTo: { key: middle, isInclusive: true } })
    if (lower) parts.push(lower)
    const upper = yield* follow({ after: middle, upTo: part.upTo, isBackwards: false })
    if (!upper.isDamaged) continue
    if (upper.last === null) parts.push({ after: middle, upTo: part.upTo })
    else {
      const rest = yield* fromEnd({ after: upper.last, upTo: part.upTo }, upper.isOutOfOrder)
      if (rest) parts.push(rest)
    }
  }
  for (const range of joined(table, lost)) onLost(range, reason)
}

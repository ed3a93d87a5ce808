// Does the computations of a step in turns of the event loop, because the main thread also reads requests: a few rows in a
// turn, or a part of one payload.

import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Derived, derive, type JournalRow } from '../../../model/index-step.ts'
import { type RecipeOf, readingOf } from '../../../model/payload-reading.ts'

/** In one turn: 64 KiB of JSON take about 1 ms to scan, or to cut into words. */
export const TURN_BYTES = 64 * 1024
/** Less is not worth a start. */
const SMALLEST_SLICE = 512

export async function deriveInTurns(
  rows: readonly JournalRow[],
  recipeOf: RecipeOf,
  extractBytes?: number,
): Promise<Derived[]> {
  const derived: Derived[] = []
  let left = TURN_BYTES
  for (const row of rows) {
    const reading = readingOf(row, recipeOf, extractBytes)
    while (reading && !reading.isDone) {
      if (left < SMALLEST_SLICE) {
        await nextTurn()
        left = TURN_BYTES
      }
      left -= reading.run(left)
    }
    derived.push(derive(row, reading))
  }
  return derived
}

/** Maps all rows; lets the event loop go on whenever rows of TURN_BYTES were done. `sizeOf` is a row's cost in bytes. */
export async function inTurns<Row, Result>(
  rows: readonly Row[],
  sizeOf: (row: Row) => number,
  work: (row: Row) => Result,
): Promise<Result[]> {
  const done: Result[] = []
  let bytes = 0
  for (const row of rows) {
    if (bytes >= TURN_BYTES) {
      await nextTurn()
      bytes = 0
    }
    done.push(work(row))
    bytes += sizeOf(row)
  }
  return done
}

// Works on rows in the main thread, which also reads requests, a few at a time.

import { setImmediate as nextTurn } from 'node:timers/promises'

/** Between two turns of the main thread: 64 KiB of JSON take about 1 ms to parse and to cut into words. */
export const TURN_BYTES = 64 * 1024

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

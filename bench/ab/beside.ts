// What `--beside` runs in a loop on the database of A while A is measured, and not on that of B: with `--against HEAD` the ratio is
// what it costs. Promises: nothing of it runs while B is measured; if a turn of the loop fails, so does the run.

import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Intray } from '../contestants/intray.ts'

export const BESIDE = ['backup'] as const
export type BesideName = (typeof BESIDE)[number]

/** One turn may take this long. */
const TURN_LIMIT_MS = 300_000

type Turn = (intray: Intray, folder: string) => Promise<unknown>

const TURNS: Readonly<Record<BesideName, Turn>> = {
  backup: (intray, folder) => intray.cli(['backup', join(folder, 'backup'), '--json'], TURN_LIMIT_MS),
}

/** Runs turn after turn until the measurement is over, and waits for the last one. Returns how many there were. */
export async function besides<T>(
  name: BesideName,
  intray: Intray,
  parentFolder: string,
  measure: () => Promise<T>,
): Promise<{ readonly measured: T; readonly turns: number }> {
  let isOver = false
  let turns = 0
  const loop = async (): Promise<void> => {
    while (!isOver) {
      const folder = mkdtempSync(join(parentFolder, 'beside-'))
      try {
        await TURNS[name](intray, folder)
        turns += 1
      } finally {
        rmSync(folder, { recursive: true })
      }
    }
  }
  const looped = loop()
  looped.catch(() => {})
  try {
    const measured = await measure()
    isOver = true
    await looped
    return { measured, turns }
  } finally {
    isOver = true
  }
}

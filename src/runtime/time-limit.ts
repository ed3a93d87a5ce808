// A time limit that counts only time in which this process ran. Where the machine stood still, timers come before what was received
// in the meantime: by the clock, every answer would be late.

/** A process that stands still for any time loses one of these parts of its limit. */
const PARTS = 10

/** Calls `over` after this time. Returns what ends the limit before. */
export function startTimeLimit(ms: number, over: () => void): () => void {
  let left = PARTS
  let timer: NodeJS.Timeout
  const nextPart = () => {
    timer = setTimeout(() => (--left === 0 ? over() : nextPart()), ms / PARTS).unref()
  }
  nextPart()
  return () => clearTimeout(timer)
}

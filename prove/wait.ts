// Waiting for a condition, never for a time. The limit is there so that a proof that hangs says what it waited for.

export { until } from '../test/support/until.ts'

const LOOK_EVERY_MS = 2
const LIMIT_MS = 120_000

/** Looks until it is so. */
export async function waitFor(what: string, isSo: () => boolean, limitMs = LIMIT_MS): Promise<void> {
  const deadline = performance.now() + limitMs
  while (!isSo()) {
    if (performance.now() > deadline) throw new Error(`waited in vain for ${what}`)
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS))
  }
}

// Waits for a condition, never for a time. The limit makes a hanging proof say what it waited for.

export { until } from '../test/support/until.ts'

const LOOK_EVERY_MS = 2
const LIMIT_MS = 120_000

/** Polls until the condition holds. */
export async function waitFor(what: string, isSo: () => boolean, limitMs = LIMIT_MS): Promise<void> {
  const deadline = performance.now() + limitMs
  while (!isSo()) {
    if (performance.now() > deadline) throw new Error(`waited in vain for ${what}`)
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS))
  }
}

// Waiting for a condition, never for a time. The deadline is only there so that a failure says what it waited for: short of the
// limit that all tests have, and long enough for a machine that others take away for minutes.

const LOOK_EVERY_MS = 10
export const DEADLINE_MS = 200_000

/** Looks until the condition holds and returns what it returned. */
export async function until<T>(
  what: string,
  condition: () => T | Promise<T>,
  deadlineMs = DEADLINE_MS,
): Promise<Exclude<T, false | null | undefined>> {
  const deadline = Date.now() + deadlineMs
  for (;;) {
    const found = await condition()
    if (found !== false && found !== null && found !== undefined) return found as Exclude<T, false | null | undefined>
    if (Date.now() > deadline) throw new Error(`waited in vain until ${what}`)
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS))
  }
}

/** The promise's own result, or a failure that names what did not happen. */
export async function within<T>(what: string, promise: Promise<T>, deadlineMs = DEADLINE_MS): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`waited in vain for ${what}`)), deadlineMs)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

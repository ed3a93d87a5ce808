// How long to wait before a retry: exponential back-off with full jitter, never less than the service asks for.

const FIRST_MS = 1000
const LONGEST_MS = 300_000

/** `tries` that failed so far, at least 1. */
export function backoffMs(tries: number, retryAfterMs: number | null, longestMs = LONGEST_MS): number {
  const ceiling = Math.min(longestMs, FIRST_MS * 2 ** Math.min(tries - 1, 30))
  return Math.max(retryAfterMs ?? 0, Math.random() * ceiling)
}

/** Resolves after the time, or as soon as the signal is aborted. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    if (signal?.aborted) end()
    else signal?.addEventListener('abort', end)
  })
}

// Coalesces concurrent calls of an asynchronous function: at most one call runs and one waits. A caller never gets the
// result of a call that had started before it asked, so that the result covers everything up to then.

export function coalesceCalls<T>(call: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | null = null
  let next: Promise<T> | null = null

  function start(): Promise<T> {
    next = null
    const started = call().finally(() => {
      running = null
    })
    running = started
    return started
  }

  return () => {
    if (running === null && next === null) return start()
    next ??= Promise.allSettled([running]).then(start)
    return next
  }
}

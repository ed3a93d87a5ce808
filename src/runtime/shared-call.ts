// One question for all who ask it at the same time.
// Promises: at most one call is under way, and one waits for it. Nobody gets the answer to a call that had begun before they asked:
// what was true when they asked is in it.

export function sharedCall<T>(call: () => Promise<T>): () => Promise<T> {
  let underWay: Promise<T> | null = null
  let next: Promise<T> | null = null

  function begin(): Promise<T> {
    next = null
    const begun = call().finally(() => {
      underWay = null
    })
    underWay = begun
    return begun
  }

  return () => {
    if (underWay === null && next === null) return begin()
    next ??= Promise.allSettled([underWay]).then(begin)
    return next
  }
}

// Bounded memoization of a function of one string, for values that repeat often, such as user agents.

const MAX_ENTRIES = 1000
/** Longer strings are not cached, so that the memory is bounded. */
const MAX_LENGTH = 512

export function memoize<T>(compute: (text: string) => T): (text: string) => T {
  const cache = new Map<string, T>()
  return (text) => {
    if (text.length > MAX_LENGTH) return compute(text)
    const cached = cache.get(text)
    if (cached !== undefined) return cached
    if (cache.size >= MAX_ENTRIES) cache.clear()
    const own = ownCopy(text)
    const result = compute(own)
    cache.set(own, result)
    return result
  }
}

/** A slice of a request would keep the whole request in memory, and the token in it. Concatenation makes a copy. */
function ownCopy(text: string): string {
  return ` ${text}`.slice(1)
}

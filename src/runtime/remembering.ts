// For what is computed from a text that comes again and again, such as a user agent: remembers what came of it.

const MAX_REMEMBERED = 1000
/** A longer one is computed each time: what is remembered is bounded. */
const MAX_LENGTH = 512

export function remembering<T>(compute: (text: string) => T): (text: string) => T {
  const remembered = new Map<string, T>()
  return (text) => {
    if (text.length > MAX_LENGTH) return compute(text)
    const known = remembered.get(text)
    if (known !== undefined) return known
    if (remembered.size >= MAX_REMEMBERED) remembered.clear()
    const own = ownCopy(text)
    const result = compute(own)
    remembered.set(own, result)
    return result
  }
}

/** A text that was cut out of a request keeps the whole of it alive, and the token in it. One that is put together is a copy. */
function ownCopy(text: string): string {
  return ` ${text}`.slice(1)
}

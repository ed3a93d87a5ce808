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
    const result = compute(text)
    remembered.set(text, result)
    return result
  }
}

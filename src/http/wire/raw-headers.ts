// Reads repeated headers, which Node joins or drops in `headers`.

/** `name` is in lower case. */
export function headerValues(rawHeaders: readonly string[], name: string): string[] {
  const values: string[] = []
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const found = rawHeaders[i]!
    if (found.length === name.length && found.toLowerCase() === name) values.push(rawHeaders[i + 1]!)
  }
  return values
}

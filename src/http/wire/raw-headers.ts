// Headers as they came. Node joins or drops repeated ones in silence; where a repetition matters, we look here.

/** All values of a header, whose name is given in lower case. */
export function headerValues(rawHeaders: readonly string[], name: string): string[] {
  const values: string[] = []
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const found = rawHeaders[i]!
    if (found.length === name.length && found.toLowerCase() === name) values.push(rawHeaders[i + 1]!)
  }
  return values
}

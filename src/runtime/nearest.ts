// Suggestions for misspelt names: "Did you mean …?" Compares only names of nearly the same length, so that a long word
// costs nothing.

const MAX_EDITS = 2

/** The known name that takes the fewest edits to reach, at most two; null if every name takes more. */
export function nearest(word: string, known: readonly string[]): string | null {
  let best: string | null = null
  let fewest = MAX_EDITS + 1
  for (const name of known) {
    if (Math.abs(name.length - word.length) >= fewest) continue
    const edits = editDistance(word, name)
    if (edits < fewest) [best, fewest] = [name, edits]
  }
  return best
}

/** Levenshtein: insertions, deletions and substitutions. */
function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const substitution = previous[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      row.push(Math.min(substitution, previous[j]! + 1, row[j - 1]! + 1))
    }
    previous = row
  }
  return previous[b.length]!
}

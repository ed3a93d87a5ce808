// "Did you mean …?"

/** The known name that takes the fewest edits to reach. */
export function nearest(word: string, known: readonly string[]): string {
  const scored = known.map((candidate) => ({ candidate, edits: editDistance(word, candidate) }))
  return scored.reduce((best, one) => (one.edits < best.edits ? one : best)).candidate
}

function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const swap = previous[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      row.push(Math.min(swap, previous[j]! + 1, row[j - 1]! + 1))
    }
    previous = row
  }
  return previous[b.length]!
}

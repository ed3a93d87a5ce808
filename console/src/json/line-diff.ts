// Line diff of two texts. Bounded: equal lines at both ends are skipped, and if the rest is too large to compare, all of it
// is shown as removed and added.

export interface DiffLine {
  readonly mark: 'same' | 'removed' | 'added'
  readonly depth: number
  readonly text: string
}

interface Line {
  readonly depth: number
  readonly text: string
}

/** The largest table of line pairs: 4 million take about 20 ms. */
const MAX_PAIRS = 4_000_000

export function diffLines(before: readonly Line[], after: readonly Line[]): DiffLine[] {
  let head = 0
  while (head < before.length && head < after.length && isSame(before[head]!, after[head]!)) head++
  let tail = 0
  while (
    tail < before.length - head &&
    tail < after.length - head &&
    isSame(before[before.length - 1 - tail]!, after[after.length - 1 - tail]!)
  )
    tail++
  const marked = (lines: readonly Line[], mark: DiffLine['mark']) => lines.map((line) => ({ ...pick(line), mark }))
  return [
    ...marked(before.slice(0, head), 'same'),
    ...middle(before.slice(head, before.length - tail), after.slice(head, after.length - tail), marked),
    ...marked(before.slice(before.length - tail), 'same'),
  ]
}

function middle(
  before: readonly Line[],
  after: readonly Line[],
  marked: (lines: readonly Line[], mark: DiffLine['mark']) => DiffLine[],
): DiffLine[] {
  const width = after.length + 1
  if ((before.length + 1) * width > MAX_PAIRS) return [...marked(before, 'removed'), ...marked(after, 'added')]
  // For each pair, the length of the longest common subsequence of the lines after it.
  const common = new Uint32Array((before.length + 1) * width)
  for (let b = before.length - 1; b >= 0; b--) {
    for (let a = after.length - 1; a >= 0; a--) {
      const here = b * width + a
      common[here] = isSame(before[b]!, after[a]!)
        ? common[here + width + 1]! + 1
        : Math.max(common[here + width]!, common[here + 1]!)
    }
  }
  const lines: DiffLine[] = []
  let b = 0
  let a = 0
  while (b < before.length || a < after.length) {
    const here = b * width + a
    if (b < before.length && a < after.length && isSame(before[b]!, after[a]!)) {
      lines.push(...marked([before[b]!], 'same'))
      b++
      a++
    } else if (a >= after.length || (b < before.length && common[here + width]! >= common[here + 1]!)) {
      lines.push(...marked([before[b++]!], 'removed'))
    } else lines.push(...marked([after[a++]!], 'added'))
  }
  return lines
}

const pick = ({ depth, text }: Line) => ({ depth, text })

/** Ignores a comma at the end, which depends on the next line. */
function isSame(one: Line, other: Line): boolean {
  return one.depth === other.depth && one.text.replace(/,$/, '') === other.text.replace(/,$/, '')
}

// What the checks of the documents need to know about Markdown: words, headings with their anchors, links and tables.

/** Tokens with a letter or a digit: table lines and list signs are no words. */
export function countWords(text: string): number {
  return text.split(/\s+/).filter((token) => /[\p{L}\p{N}]/u.test(token)).length
}

/** The lines outside of fenced code, with their numbers from 1. */
export function proseLines(text: string): { readonly number: number; readonly line: string }[] {
  let fence: string | null = null
  return text.split('\n').flatMap((line, index) => {
    const mark = /^\s*(```+|~~~+)/.exec(line)?.[1]
    if (fence === null && mark) fence = mark
    else if (fence !== null && mark?.startsWith(fence)) fence = null
    else if (fence === null) return [{ number: index + 1, line }]
    return []
  })
}

/** The anchors of its headings, as GitHub makes them. */
export function anchorsOf(text: string): Set<string> {
  const anchors = new Set<string>()
  for (const { line } of proseLines(text)) {
    const heading = /^#{1,6} +(.*?)(?: +#+)?$/.exec(line)?.[1]
    if (heading === undefined) continue
    const slug = heading
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replace(/\s/g, '-')
    let anchor = slug
    for (let n = 1; anchors.has(anchor); n++) anchor = `${slug}-${n}`
    anchors.add(anchor)
  }
  return anchors
}

export interface Link {
  readonly file: string
  readonly anchor: string
}

/** Relative links and pictures; `file` is empty for an anchor of the same page. */
export function relativeLinks(text: string): Link[] {
  const prose = proseLines(text)
    .map(({ line }) => line)
    .join('\n')
  return Array.from(prose.matchAll(/\]\(([^)\s]*)\)/g), ([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/i.test(target))
    .map((target) => {
      const [file = '', anchor = ''] = target.split('#')
      return { file, anchor }
    })
}

const ROW = /^\s*\|/
const SEPARATOR = /^\s*\|(?:\s*:?-+:?\s*\|)+\s*$/

/** Why its tables would not be shown as tables; empty if they would. */
export function tableProblems(text: string): string[] {
  const problems: string[] = []
  const lines = proseLines(text)
  for (let at = 0; at < lines.length; at++) {
    if (!ROW.test(lines[at]!.line)) continue
    const start = at
    while (at < lines.length && ROW.test(lines[at]!.line)) at += 1
    const rows = lines.slice(start, at)
    const first = rows[0]!.number
    if (!SEPARATOR.test(rows[1]?.line ?? '')) {
      problems.push(`line ${first}: rows without a header, perhaps cut off by a blank line`)
      continue
    }
    const cells = cellCount(rows[0]!.line)
    for (const { number, line } of rows) {
      if (cellCount(line) !== cells) problems.push(`line ${number}: ${cellCount(line)} cells, the header has ${cells}`)
    }
    if ((lines[at]?.line ?? '').trim() !== '') problems.push(`line ${lines[at]!.number}: no blank line after the table`)
  }
  return problems
}

/** A bar in a cell has to be written \| even inside of code. */
function cellCount(row: string): number {
  const bars = row.trim().match(/(?<!\\)\|/g)?.length ?? 0
  return row.trim().endsWith('|') ? bars - 1 : bars
}

// Formats rows of text as an aligned table.
// Promises: the first column is left-aligned, the others as given, no trailing blanks.

export interface Column {
  readonly title: string
  readonly align?: 'left' | 'right'
}

export function table(columns: readonly Column[], rows: readonly (readonly string[])[]): string {
  const widths = columns.map(({ title }, i) => Math.max(title.length, ...rows.map((row) => row[i]?.length ?? 0)))
  const line = (cells: readonly string[]): string =>
    columns
      .map(({ align }, i) => {
        const cell = cells[i] ?? ''
        const width = widths[i] ?? 0
        return (align ?? (i === 0 ? 'left' : 'right')) === 'left' ? cell.padEnd(width) : cell.padStart(width)
      })
      .join('  ')
      .trimEnd()
  return [
    line(columns.map(({ title }) => title)),
    line(widths.map((width) => '-'.repeat(width))),
    ...rows.map(line),
  ].join('\n')
}

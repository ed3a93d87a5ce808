// What commands print: tables for people, one JSON object a line for scripts.

/**
 * Columns as wide as their widest cell; the last one is not padded. Cells are shown like the values of a record. With a width,
 * lines are cut to it.
 */
export function table(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  width = Number.POSITIVE_INFINITY,
): string {
  const lines = [header, ...rows.map((row) => row.map(printable))]
  const widths = header.map((_, column) =>
    lines.reduce((widest, line) => Math.max(widest, widthOf(line[column] ?? '')), 0),
  )
  return lines
    .map((row) =>
      row
        .map((cell, column) => (column === row.length - 1 ? cell : cell + ' '.repeat(widths[column]! - widthOf(cell))))
        .join('  '),
    )
    .map((line) => `${cut(line.trimEnd(), width)}\n`)
    .join('')
}

/** Names and values below each other; values from outside are shown with their control characters escaped. */
export function record(fields: Readonly<Record<string, string | number | null>>): string {
  const width = Math.max(...Object.keys(fields).map((name) => name.length))
  return Object.entries(fields)
    .map(([name, value]) => `${name.padEnd(width)}  ${value === null ? '-' : printable(String(value))}\n`)
    .join('')
}

/** The terminal's width; what goes elsewhere is not cut. */
export function outputWidth(): number {
  return (process.stdout.isTTY && process.stdout.columns) || Number.POSITIVE_INFINITY
}

/** So many places of a terminal at most; what was cut off is told by an ellipsis. */
export function cut(text: string, width: number): string {
  if (widthOf(text) <= width) return text
  let kept = ''
  let left = width - 1
  for (const character of text) {
    left -= widthOf(character)
    if (left < 0) break
    kept += character
  }
  return `${kept}…`
}

/** Characters that take two places: East Asian ones and emoji. */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u

function widthOf(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length
  return Array.from(text).reduce((width, character) => width + (WIDE.test(character) ? 2 : 1), 0)
}

/** Untrusted text is only ever text: nothing in it may steer a terminal or turn the line around. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0
    return `\\u${code.toString(16).padStart(4, '0')}`
  })
}

export function print(text: string): void {
  process.stdout.write(text)
}

export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`)
}

export interface ListFormat<T> {
  readonly jsonOf: (one: T) => unknown
  /** What to do where there is nothing. */
  readonly empty: string
  /** The columns, each with what it shows of one. */
  readonly columns: Readonly<Record<string, (one: T) => string>>
}

/** A line of JSON for each, for scripts; a table for people. */
export function printList<T>(all: readonly T[], isJson: boolean, { jsonOf, empty, columns }: ListFormat<T>): void {
  if (isJson) for (const one of all) printJson(jsonOf(one))
  else if (all.length === 0) print(`${empty}\n`)
  else
    print(
      table(
        Object.keys(columns),
        all.map((one) => Object.values(columns).map((cell) => cell(one))),
      ),
    )
}

/** Something beside the result: scripts that read the result do not get it. */
export function note(text: string): void {
  process.stderr.write(`${text}\n`)
}

/** Progress on stderr: on a terminal one line that is written over; else a line now and then. */
export function createProgress(name: string): { say(text: string): void; end(): void } {
  const isTerminal = process.stderr.isTTY
  let saidAt = Number.NEGATIVE_INFINITY
  return {
    say: (text) => {
      const now = performance.now()
      if (now - saidAt < (isTerminal ? 100 : 5000)) return
      saidAt = now
      process.stderr.write(isTerminal ? `\r\u001b[K${name}: ${text}` : `${name}: ${text}\n`)
    },
    end: () => {
      if (isTerminal) process.stderr.write('\n')
    },
  }
}

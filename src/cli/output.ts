// Prints the results of commands: tables for people, one JSON object a line for scripts.

/** Columns as wide as their widest cell, with control characters escaped. Lines are cut to `width`. */
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

/** One line for each field, with control characters escaped. */
export function record(fields: Readonly<Record<string, string | number | null>>): string {
  const width = Math.max(...Object.keys(fields).map((name) => name.length))
  return Object.entries(fields)
    .map(([name, value]) => `${name.padEnd(width)}  ${value === null ? '-' : printable(String(value))}\n`)
    .join('')
}

/** The terminal's width; output to a file or a pipe is not cut. */
export function outputWidth(): number {
  return (process.stdout.isTTY && process.stdout.columns) || Number.POSITIVE_INFINITY
}

/** Breaks lines at 120 characters; all lines but the first are indented by `indent`. */
export function wrapped(text: string, indent: number): string {
  const pattern = new RegExp(`(.{1,${120 - indent}})(?: |$)`, 'g')
  return text.replaceAll(pattern, `$1\n${' '.repeat(indent)}`).trimEnd()
}

/** At most `width` columns of a terminal; ends in an ellipsis if text was cut off. */
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

/** Characters that take two columns: East Asian ones and emoji. */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u

function widthOf(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length
  return Array.from(text).reduce((width, character) => width + (WIDE.test(character) ? 2 : 1), 0)
}

/** Escapes characters that could control a terminal or change the direction of text. */
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
  /** Printed instead of an empty list. */
  readonly empty: string
  /** The header of each column and its cell for one item. */
  readonly columns: Readonly<Record<string, (one: T) => string>>
}

/** One line of JSON for each item, for scripts; a table for people. */
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

/** A note on stderr: scripts read the result from stdout. */
export function note(text: string): void {
  process.stderr.write(`${text}\n`)
}

/** Progress on stderr: on a terminal one line that is overwritten, otherwise a line every 5 s. */
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

/** Runs work that says how far it is. */
export async function inSteps<T>(name: string, work: (say: (text: string) => void) => Promise<T>): Promise<T> {
  const progress = createProgress(name)
  try {
    return await work(progress.say)
  } finally {
    progress.end()
  }
}

// Formats JSON for reading: one indented line for each field, cut from the original text. Long lines are split, so that every
// row has a bounded width.

import { isFailure, scanJson, type Token } from './scan.ts'

export interface JsonLine {
  readonly depth: number
  readonly text: string
  /** Continues the line before. */
  readonly isContinuation: boolean
}

/** Deeper nesting is shown at this depth, so that a million brackets do not take a million columns. */
const MAX_DEPTH = 24
export const PIECE_LENGTH = 400

/** The text as lines; text that is not JSON line by line. */
export function linesOf(text: string): readonly JsonLine[] {
  const scanned = scanJson(text)
  return isFailure(scanned) ? plainLines(text) : jsonLines(text, scanned)
}

function jsonLines(text: string, tokens: readonly Token[]): JsonLine[] {
  const lines: JsonLine[] = []
  let depth = 0
  let line = ''
  const end = () => {
    if (line !== '') pushPieces(lines, Math.min(depth, MAX_DEPTH), line)
    line = ''
  }
  for (let n = 0; n < tokens.length; n++) {
    const token = tokens[n]!
    const piece = text.slice(token.from, token.to)
    if (token.kind === 'open') {
      const empty = tokens[n + 1]?.kind === 'close'
      line += piece
      if (empty) continue
      end()
      depth++
    } else if (token.kind === 'close') {
      const empty = tokens[n - 1]?.kind === 'open'
      if (!empty) {
        end()
        depth--
      }
      line += piece
    } else if (token.kind === 'comma') {
      line += ','
      end()
    } else line += token.kind === 'colon' ? ': ' : piece
  }
  end()
  return lines
}

function plainLines(text: string): JsonLine[] {
  const lines: JsonLine[] = []
  for (const line of text.split('\n')) pushPieces(lines, 0, line)
  return lines
}

function pushPieces(lines: JsonLine[], depth: number, line: string): void {
  if (line.length <= PIECE_LENGTH) {
    lines.push({ depth, text: line, isContinuation: false })
    return
  }
  for (let from = 0; from < line.length; ) {
    let to = Math.min(from + PIECE_LENGTH, line.length)
    const code = line.charCodeAt(to - 1)
    if (to < line.length && code >= 0xd800 && code <= 0xdbff) to--
    lines.push({ depth, text: line.slice(from, to), isContinuation: from > 0 })
    from = to
  }
}

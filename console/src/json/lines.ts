// Lays JSON out for reading: one line for each field, indented, each a piece of the original text. Lines that are too long are
// given in pieces, so that every row has a bounded width.

import { isFailure, scanJson, type Token } from './scan.ts'

export interface JsonLine {
  readonly depth: number
  readonly text: string
  /** A further piece of the line before. */
  readonly goesOn: boolean
}

/** Deeper than this is shown at this depth: a million brackets must not be a million columns. */
const MAX_DEPTH = 24
export const PIECE_LENGTH = 400

/** The text as lines; text that is no JSON as it stands. */
export function layOut(text: string): readonly JsonLine[] {
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
    lines.push({ depth, text: line, goesOn: false })
    return
  }
  for (let from = 0; from < line.length; ) {
    let to = Math.min(from + PIECE_LENGTH, line.length)
    const code = line.charCodeAt(to - 1)
    if (to < line.length && code >= 0xd800 && code <= 0xdbff) to--
    lines.push({ depth, text: line.slice(from, to), goesOn: from > 0 })
    from = to
  }
}

// The fields of a JSON text as a flat list of paths and values. Numbers keep the digits that were sent.

import { isFailure, scanJson, type Token } from './scan.ts'

export interface JsonField {
  /** A JSON Pointer. */
  readonly path: string
  readonly type: 'text' | 'number' | 'boolean' | 'null' | 'object' | 'list'
  /** For strings the decoded text; for everything else the text as sent. */
  readonly value: string
}

interface Frame {
  readonly path: string
  readonly isList: boolean
  readonly openedAt: number
  index: number
  key: string
  hasMembers: boolean
}

/** Leaves only; an empty object or list is a leaf. Null if the text is not JSON. */
export function flatFields(text: string): readonly JsonField[] | null {
  const tokens = scanJson(text)
  if (isFailure(tokens)) return null
  const fields: JsonField[] = []
  const frames: Frame[] = []
  const pathHere = () => {
    const frame = frames.at(-1)
    return frame ? `${frame.path}/${frame.isList ? frame.index : pointerPart(frame.key)}` : ''
  }
  for (let n = 0; n < tokens.length; n++) {
    const token = tokens[n]!
    const frame = frames.at(-1)
    if (token.kind === 'open') {
      if (frame) frame.hasMembers = true
      const isList = text[token.from] === '['
      frames.push({ path: pathHere(), isList, openedAt: token.from, index: 0, key: '', hasMembers: false })
    } else if (token.kind === 'close') {
      const closed = frames.pop()!
      if (!closed.hasMembers) {
        fields.push({
          path: closed.path,
          type: closed.isList ? 'list' : 'object',
          value: text.slice(closed.openedAt, token.to),
        })
      }
    } else if (token.kind === 'comma') frame!.index++
    else if (token.kind === 'string' && tokens[n + 1]?.kind === 'colon') frame!.key = textOf(text, token)
    else if (token.kind !== 'colon') {
      if (frame) frame.hasMembers = true
      fields.push(leaf(text, token, pathHere()))
    }
  }
  return fields
}

function leaf(text: string, token: Token, path: string): JsonField {
  const sent = text.slice(token.from, token.to)
  if (token.kind === 'string') return { path, type: 'text', value: textOf(text, token) }
  if (token.kind === 'number') return { path, type: 'number', value: sent }
  return { path, type: sent === 'null' ? 'null' : 'boolean', value: sent }
}

/** Safe for a string: only numbers lose digits in JSON.parse. */
function textOf(text: string, token: Token): string {
  return JSON.parse(text.slice(token.from, token.to)) as string
}

function pointerPart(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1')
}

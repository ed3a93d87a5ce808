// Reads a list of tokens that another system made: CSV with a header, or one JSON object a line. A row names the digest of a token,
// never the token.

import { isScope } from '../model/principal.ts'
import { isoMoment } from '../runtime/parameter.ts'
import { KEY_ID } from './token.ts'
import { MAX_LABEL } from './token-lifecycle.ts'

export const MAX_LISTED_TOKENS = 100_000

const FIELDS = ['name', 'account', 'company', 'scope', 'sha256', 'expires', 'key_id'] as const
const REQUIRED = ['account', 'company', 'sha256'] as const

export interface ListedToken {
  /** From 1. */
  readonly line: number
  readonly label: string
  readonly accountId: number
  readonly companyId: number
  readonly scope: string
  readonly hash: Uint8Array
  readonly expiresAt: number | null
  /** Of a token that another Intray minted; null: it is computed. */
  readonly keyId: string | null
}

/** Throws a sentence for the first problem, with its line but never with a value: that might be a token. */
export function readTokenList(text: string): ListedToken[] {
  const rows = /^\s*\{/.test(text) ? jsonRows(text) : csvRows(text)
  if (rows.length > MAX_LISTED_TOKENS) throw new Error(`The file has more than ${MAX_LISTED_TOKENS} tokens. Split it.`)
  const seen = new Set<string>()
  return rows.map(({ line, fields }) => {
    try {
      const read = tokenOf(line, fields)
      const digest = Buffer.from(read.hash).toString('hex')
      if (seen.has(digest)) throw new Error('its sha256 stands in an earlier line too')
      seen.add(digest)
      return read
    } catch (error) {
      throw new Error(`Line ${line}: ${(error as Error).message}.`)
    }
  })
}

interface Row {
  readonly line: number
  readonly fields: Readonly<Record<string, string>>
}

function tokenOf(line: number, fields: Row['fields']): ListedToken {
  for (const name of Object.keys(fields))
    if (!FIELDS.some((known) => known === name)) throw new Error(`it has a field that is none of ${FIELDS.join(', ')}`)
  for (const name of REQUIRED) if ((fields[name] ?? '') === '') throw new Error(`${name} is missing`)
  const { name: label = '', scope = '', sha256 = '', expires = '', key_id: keyId = '' } = fields
  if (label.length > MAX_LABEL) throw new Error(`name has more than ${MAX_LABEL} characters`)
  // PostgreSQL stores neither.
  if (label.includes('\0') || !label.isWellFormed()) throw new Error('name holds U+0000 or half a character')
  if (scope !== '' && !isScope(scope))
    throw new Error('scope takes 1 to 64 of a-z, 0-9, "_", ".", ":" and "-", starting with a letter or digit')
  if (!/^[0-9a-f]{64}$/i.test(sha256)) throw new Error('sha256 is not 64 hexadecimal digits')
  if (keyId !== '' && !KEY_ID.test(keyId)) throw new Error('key_id is not the key id of a token of Intray')
  return {
    line,
    label,
    accountId: idOf('account', fields.account!),
    companyId: idOf('company', fields.company!),
    scope,
    hash: Buffer.from(sha256, 'hex'),
    expiresAt: expires === '' ? null : timeOf(expires),
    keyId: keyId === '' ? null : keyId,
  }
}

function idOf(name: string, text: string): number {
  const id = /^[1-9]\d{0,15}$/.test(text) ? Number(text) : Number.NaN
  if (!Number.isSafeInteger(id)) throw new Error(`${name} is not a whole number from 1`)
  return id
}

function timeOf(text: string): number {
  try {
    return isoMoment(text)
  } catch (error) {
    throw new Error(`expires ${(error as Error).message}`)
  }
}

function jsonRows(text: string): Row[] {
  return text
    .split('\n')
    .flatMap((line, n) => (line.trim() === '' ? [] : [{ line: n + 1, fields: jsonFields(line, n + 1) }]))
}

function jsonFields(text: string, line: number): Row['fields'] {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new Error(`Line ${line} is not JSON.`)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Error(`Line ${line} is not a JSON object.`)
  const fields = Object.entries(value as Record<string, unknown>).map(([name, one]) => {
    if (one === null) return [name, ''] as const
    if (typeof one !== 'string' && typeof one !== 'number') throw new Error(`Line ${line}: a field is no text.`)
    return [name, String(one).trim()] as const
  })
  return Object.fromEntries(fields)
}

function csvRows(text: string): Row[] {
  const [header, ...records] = csvRecords(text)
  if (!header) throw new Error('The file is empty.')
  const names = header.cells.map((name) => name.trim().toLowerCase())
  for (const name of REQUIRED)
    if (!names.includes(name)) throw new Error(`The first line is no header with ${REQUIRED.join(', ')}.`)
  return records.map(({ line, cells }) => {
    if (cells.length !== names.length)
      throw new Error(`Line ${line} has ${cells.length} cells, and the header ${names.length}.`)
    return { line, fields: Object.fromEntries(names.map((name, n) => [name, cells[n]!.trim()])) }
  })
}

/** A quoted cell, or one without quotes, and what ends it. */
const CELL = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/y

/** RFC 4180, without blank lines. */
function csvRecords(text: string): { line: number; cells: string[] }[] {
  const all = text.replace(/^\uFEFF/, '')
  const cell = new RegExp(CELL)
  const records: { line: number; cells: string[] }[] = []
  let cells: string[] = []
  let line = 1
  let next = 1
  while (cell.lastIndex < all.length || cells.length > 0) {
    const match = cell.exec(all)
    if (!match) throw new Error(`Line ${next} is not CSV: a quote is not closed, or stands inside of a cell.`)
    const [whole, quoted, plain = '', end] = match
    next += whole.split('\n').length - 1
    cells.push(quoted?.replaceAll('""', '"') ?? plain)
    if (end === ',') continue
    if (cells.length > 1 || cells[0] !== '') records.push({ line, cells })
    cells = []
    line = next
  }
  return records
}

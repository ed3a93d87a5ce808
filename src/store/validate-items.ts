// Validates items before they reach the database, so that an item that no database could store fails alone, and in the same way on
// every driver.

import type { AppendItem, AppendOutcome } from './contract/append.ts'
import { META_COLUMNS } from './event-columns.ts'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** What makes a message one message, or groups it: stored as it is, or not at all. */
const IDENTITY_FIELDS = ['sourceRef', 'channelRef', 'idempotencyKey'] as const

/** Appends the valid items; the others have failed, each in its place. */
export async function appendValid(
  items: readonly AppendItem[],
  append: (valid: readonly AppendItem[]) => Promise<AppendOutcome[]>,
): Promise<AppendOutcome[]> {
  const problems = items.map(problemOf)
  const valid = items.filter((_, at) => problems[at] === null)
  const outcomes = valid.length === 0 ? [] : await append(valid)
  if (valid.length === items.length) return outcomes
  const stored = outcomes.values()
  return problems.map((reason) => (reason === null ? stored.next().value! : { outcome: 'failed', reason }))
}

/** Why an item cannot be stored; null if it can. */
function problemOf(item: AppendItem): string | null {
  for (const { field, type, isOptional } of META_COLUMNS) {
    const value = item[field]
    if (value === null && isOptional) continue
    if (type === 'text' ? typeof value !== 'string' : !Number.isSafeInteger(value)) {
      return `${field} is not ${type === 'text' ? 'a text' : 'a whole number'}`
    }
  }
  for (const field of IDENTITY_FIELDS) {
    const ref = item[field]
    // PostgreSQL stores no U+0000, and two lone surrogates would become the same bytes.
    if (ref !== null && (ref.includes('\0') || !ref.isWellFormed())) return `${field} holds U+0000 or half a character`
  }
  return typeof item.mintedKey === 'string' && UUID.test(item.mintedKey) ? null : 'mintedKey is not a UUID'
}

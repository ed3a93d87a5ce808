// Stores tokens of another system by their digests, so that senders need no new ones. Importing a list again changes nothing.

import { importedKeyId } from '../model/imported-token.ts'
import type { TokenRecord } from '../model/token.ts'
import type { TokenStore } from '../store/contract/tokens.ts'
import type { ListedToken } from './token-list-file.ts'

export type ImportedToken =
  | { readonly outcome: 'created' | 'present'; readonly keyId: string }
  /** Another token has its key id, or it is here for another tenant or scope. */
  | { readonly outcome: 'refused'; readonly keyId: string }

export async function importToken(
  tokens: Pick<TokenStore, 'find' | 'create' | 'importKey'>,
  listed: ListedToken,
  now: number,
): Promise<ImportedToken> {
  const { line: _, keyId: given, ...terms } = listed
  const keyId = given ?? importedKeyId(await tokens.importKey(), listed.hash)
  const present = async (): Promise<ImportedToken | null> => {
    const known = await tokens.find(keyId)
    return known && { outcome: isSame(known, listed) ? 'present' : 'refused', keyId }
  }
  const known = await present()
  if (known) return known
  try {
    await tokens.create({ ...terms, keyId, createdAt: now, rotatedFrom: null })
  } catch (error) {
    const meanwhile = await present()
    if (meanwhile === null) throw error
    return meanwhile
  }
  return { outcome: 'created', keyId }
}

function isSame(known: TokenRecord, { hash, accountId, companyId, scope }: ListedToken): boolean {
  return (
    Buffer.compare(known.hash, hash) === 0 &&
    known.accountId === accountId &&
    known.companyId === companyId &&
    known.scope === scope
  )
}

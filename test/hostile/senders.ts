// Who sends, or pretends to: tokens of every kind and every way to put them into a header.

import { mintToken } from '../../src/auth/token.ts'
import type { TestApp } from '../support/app.ts'
import { createToken } from '../support/journal.ts'

export interface SenderPart {
  readonly name: string
  readonly lines: readonly string[]
  /** What it may do, or how it is refused. */
  readonly verdict:
    | 'sender'
    | 'processor'
    | 'missing_token'
    | 'invalid_token'
    | 'token_disabled'
    | 'token_expired'
    | 'twice'
}

export interface Tokens {
  readonly sender: string
  readonly processor: string
  readonly disabled: string
  readonly expired: string
}

export async function tokensOf({ store, token }: TestApp): Promise<Tokens> {
  return {
    sender: token,
    processor: await createToken(store, { scope: 'processor' }),
    disabled: await createToken(store, { isActive: false }),
    expired: await createToken(store, { expiresAt: Date.now() - 1000 }),
  }
}

export function sendersOf({ sender, processor, disabled, expired }: Tokens): readonly SenderPart[] {
  const header = (value: string) => [`Authorization: ${value}`]
  const invalid = (name: string, value: string): SenderPart => ({
    name,
    lines: header(value),
    verdict: 'invalid_token',
  })
  const missing = (name: string, ...lines: string[]): SenderPart => ({ name, lines, verdict: 'missing_token' })
  return [
    { name: 'a sender', lines: header(`Bearer ${sender}`), verdict: 'sender' },
    { name: 'a processor', lines: header(`Bearer ${processor}`), verdict: 'processor' },
    { name: 'a sender in small letters', lines: [`authorization:bearer   ${sender}  `], verdict: 'sender' },
    { name: 'a disabled token', lines: header(`Bearer ${disabled}`), verdict: 'token_disabled' },
    { name: 'an expired token', lines: header(`Bearer ${expired}`), verdict: 'token_expired' },
    missing('no token'),
    missing('an empty header', 'Authorization:'),
    missing('another scheme', 'Authorization: Basic YTpi'),
    missing('a scheme alone', 'Authorization: Bearer'),
    missing('a token without a scheme', `Authorization: ${sender}`),
    missing('a token in another header', `X-Authorization: Bearer ${sender}`, `Cookie: token=${sender}`),
    missing('a token for a proxy', `Proxy-Authorization: Bearer ${sender}`),
    missing('a token under another name', `Authorization_: Bearer ${sender}`),
    invalid('nonsense', 'Bearer nonsense'),
    invalid('a token that nobody made', `Bearer ${mintToken().token}`),
    invalid('a token with a letter too many', `Bearer ${sender}x`),
    invalid('a token without its last letter', `Bearer ${sender.slice(0, -1)}`),
    invalid('a token in capitals', `Bearer ${sender.toUpperCase()}`),
    invalid('a quoted token', `Bearer "${sender}"`),
    invalid('two tokens in one header', `Bearer ${sender}, Bearer ${sender}`),
    invalid('a token and more', `Bearer ${sender} ${sender}`),
    invalid('SQL', "Bearer ' or ''='"),
    invalid('a token of 8 kB', `Bearer ${'x'.repeat(8000)}`),
    invalid('bytes above ASCII', 'Bearer \xff\xfe'),
    invalid('an encoded token', `Bearer ${sender.replace('_', '%5f')}`),
    { name: 'a token twice', lines: [...header(`Bearer ${sender}`), ...header(`Bearer ${sender}`)], verdict: 'twice' },
    { name: 'two tokens', lines: [...header('Bearer nonsense'), `authorization: Bearer ${sender}`], verdict: 'twice' },
  ]
}

// The programs to paste that the console shows: their files, and their texts for one server and token.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../../support/process.ts'

/** By the names under which the console shows them. */
export const SENDING = {
  WordPress: 'send-wordpress.php',
  PHP: 'send.php',
  TypeScript: 'send.ts',
  Python: 'send.py',
  curl: 'send.sh',
} as const
export const WORKING = { TypeScript: 'work.ts', Python: 'work.py', curl: 'work.sh' } as const

/** As the console shows it, character by character: a test in the browser compares. */
export function snippet(file: string, url: string, token: string): string {
  const text = readFileSync(join(ROOT, 'kits/examples/snippets', file), 'utf8')
  return text.trimEnd().replaceAll('https://inbox.example.org', url).replaceAll('itr_…', token)
}

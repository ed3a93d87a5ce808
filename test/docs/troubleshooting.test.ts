// The messages that docs/operating/troubleshooting.md quotes are those that the program writes.

import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const page = readFileSync(join(ROOT, 'docs/operating/troubleshooting.md'), 'utf8')
/** Parts of a sentence that stand on several lines are joined. */
const source = globSync('src/**/*.ts', { cwd: ROOT })
  .map((file) => readFileSync(join(ROOT, file), 'utf8').replaceAll(/['`] \+\s*['`]/g, ''))
  .join('\n')

/** The words of quoted messages: what stands between backticks in first cells and is a sentence, not a name. */
function quotedWords(text: string): string[] {
  const cells = Array.from(text.matchAll(/^\| (.*?) \|/gm), ([, cell]) => cell!)
  const quotes = cells.flatMap((cell) => Array.from(cell.matchAll(/`([^`]+)`/g), ([, quote]) => quote!))
  return quotes
    .filter((quote) => quote.includes(' '))
    .flatMap((quote) => quote.split('…'))
    .map((words) => words.trim().replace(/^, /, ''))
    .filter((words) => words !== '')
}

const unknown = (text: string) => quotedWords(text).filter((words) => !source.includes(words))

test('every message that is quoted is written somewhere under src', () => {
  assert.ok(quotedWords(page).length >= 10)
  assert.deepEqual(unknown(page), [])
})

test('a message that the program does not write is found', () => {
  assert.deepEqual(unknown('| `The disk is … made of cheese` | - | - |'), ['The disk is', 'made of cheese'])
})

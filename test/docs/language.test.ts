// Banned words and phrases: metaphors used as names, and sentences without an actor.

import assert from 'node:assert/strict'
import { globSync, readFileSync, statSync } from 'node:fs'
import { extname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** Files and folders that are searched. */
const ROOTS = [
  'src',
  'console/src',
  'kits/typescript/src',
  'kits/python',
  'kits/examples',
  'api',
  'docs',
  'README.md',
  'ARCHITECTURE.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'CHANGELOG.md',
]
const EXTENSIONS: ReadonlySet<string> = new Set(['.md', '.ts', '.tsx', '.sql', '.css', '.html', '.yaml', '.py'])

/** Whole words, any case; a line break or a comment sign may stand between words. */
const BANNED = [
  'whoever',
  'whomever',
  'heed',
  'heeds',
  'crowd',
  'crowds',
  'crowded',
  'amiss',
  'hopefully',
  'the pen',
  'the desk',
  'that there is',
  'that there are',
  'there is not',
  'is told',
  'are told',
  'was told',
  'were told',
  'be told',
  'tells of',
  'tell of',
  'told of',
  'came of it',
  'became of it',
  'becomes of it',
  'came of them',
  'may hope',
  'hope to be',
  'hopes to be',
  'in the same mood',
  'rests for',
  'rest for a look',
  'got in its way',
  'get in its way',
  "in each other's way",
  'takes notice of',
  'took notice of',
  'for want of',
  'is it well',
  'what no database',
  'so many places',
] as const

const PATTERNS = BANNED.map((phrase) => ({
  phrase,
  pattern: new RegExp(`(?<![\\w'-])${phrase.replaceAll(' ', '[\\s/*]+')}(?![\\w'-])`, 'gi'),
}))

/** `line N: phrase` for each place. */
function bannedIn(text: string): string[] {
  return PATTERNS.flatMap(({ phrase, pattern }) =>
    Array.from(text.matchAll(pattern), ({ index }) => `line ${text.slice(0, index).split('\n').length}: ${phrase}`),
  )
}

function filesOf(root: string): string[] {
  if (statSync(join(ROOT, root)).isFile()) return [root]
  return globSync(`${root}/**/*`, { cwd: ROOT }).filter((file) => EXTENSIONS.has(extname(file)))
}

for (const root of ROOTS) {
  test(`${root} uses none of the banned phrases`, () => {
    const files = filesOf(root)
    assert.ok(files.length > 0)
    const found = files.flatMap((file) =>
      bannedIn(readFileSync(join(ROOT, file), 'utf8')).map((at) => `${file}, ${at}`),
    )
    assert.deepEqual(found, [])
  })
}

test('a banned phrase is found in any case, across lines and in comments, and only as whole words', () => {
  const bad = 'Fine.\nWHOEVER comes again\n * is\n * told so, that\n// there is a crowd before the\n/* pen */'
  assert.deepEqual(bannedIn(bad).toSorted(), [
    'line 2: whoever',
    'line 3: is told',
    'line 4: that there is',
    'line 5: crowd',
    'line 5: the pen',
  ])
  assert.deepEqual(
    bannedIn('Open the pending heedless crowdfunding; this toldness; the pen-holder; there is nothing.'),
    [],
  )
})

// The pages as pages: short enough, every link and anchor leads somewhere, every table is shown as one, every file that is named
// exists. Each check has a control: a made-up text that it must find fault with.

import assert from 'node:assert/strict'
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { anchorsOf, countWords, proseLines, relativeLinks, tableProblems } from './markdown.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8')
const pages = globSync(['*.md', 'docs/**/*.md'], { cwd: ROOT })
const ADR_FOLDER = 'docs/internals/adr'
const decisions = pages.filter((page) => page.startsWith(`${ADR_FOLDER}/0`))

const MAX_DECISIONS = 25
const MAX_DECISION_WORDS = 400
const MAX_PAGE_WORDS = 1600
const PAGE_LIMITS: Readonly<Record<string, number>> = {
  'docs/internals/benchmarks.md': 900,
  'docs/internals/reliability.md': 1200,
}

function maxWords(page: string): number {
  return decisions.includes(page) ? MAX_DECISION_WORDS : (PAGE_LIMITS[page] ?? MAX_PAGE_WORDS)
}

function tooLong(page: string, text: string): string[] {
  const words = countWords(text)
  return words > maxWords(page) ? [`${page} has ${words} words, more than ${maxWords(page)}`] : []
}

test('no page is longer than its limit', () => {
  assert.ok(pages.length > 40)
  for (const page of Object.keys(PAGE_LIMITS)) assert.ok(pages.includes(page), page)
  assert.deepEqual(
    pages.flatMap((page) => tooLong(page, read(page))),
    [],
  )
})

test('a page that is one word too long is found', () => {
  const limits = {
    [decisions[0]!]: 400,
    'docs/internals/benchmarks.md': 900,
    'docs/internals/reliability.md': 1200,
    'README.md': 1600,
  }
  for (const [page, limit] of Object.entries(limits)) {
    assert.equal(tooLong(page, 'word '.repeat(limit)).length, 0)
    assert.equal(tooLong(page, `${'word '.repeat(limit)} | - | one`).length, 1, page)
  }
})

const PARTS = ['Context', 'Decision', 'Consequences', 'Rejected options']

function formProblems(text: string): string[] {
  const headings = Array.from(text.matchAll(/^## (.*)$/gm), ([, heading]) => heading!)
  return headings.join() === PARTS.join() ? [] : [`its parts are ${headings.join(', ')}`]
}

test('at most 25 decisions are in force; each has the four parts and stands in the index', () => {
  assert.ok(decisions.length > 0 && decisions.length <= MAX_DECISIONS, `${decisions.length} decisions`)
  const index = read(`${ADR_FOLDER}/README.md`)
  for (const decision of decisions) {
    assert.deepEqual(formProblems(read(decision)), [], decision)
    assert.ok(index.includes(`(${decision.slice(ADR_FOLDER.length + 1)})`), `${decision} is not in the index`)
  }
})

test('a decision without rejected options is found', () => {
  assert.equal(formProblems('# 1. A\n\n## Context\n\n## Decision\n\n## Consequences\n').length, 1)
})

function brokenLinks(page: string, text: string): string[] {
  return relativeLinks(text).flatMap(({ file, anchor }) => {
    const target = file === '' ? page : normalize(join(dirname(page), file))
    if (file !== '' && !existsSync(join(ROOT, target))) return [`${page} links to ${target}`]
    if (anchor === '') return []
    const anchors = anchorsOf(file === '' ? text : read(target))
    return anchors.has(anchor) ? [] : [`${page} links to ${target}#${anchor}`]
  })
}

test('every relative link leads to a file, and every anchor to a heading', () => {
  assert.deepEqual(
    pages.flatMap((page) => brokenLinks(page, read(page))),
    [],
  )
})

test('a link to a missing file, a missing heading and a missing picture are found', () => {
  const text = `# A page

## What is \`promised\`, really?

[good](README.md), [good](#what-is-promised-really), [good](ARCHITECTURE.md#glossary), [good](https://example.org/x#y)
[bad](missing.md), [bad](#what-is-promised), [bad](ARCHITECTURE.md#nothing), ![bad](docs/none.png)

\`\`\`
[not a link](in-code.md)
\`\`\`
`
  assert.deepEqual(
    brokenLinks('made-up.md', text).map((line) => line.replace('made-up.md links to ', '')),
    ['missing.md', 'made-up.md#what-is-promised', 'ARCHITECTURE.md#nothing', 'docs/none.png'],
  )
})

test('every table is shown as a table', () => {
  const tables = pages.flatMap((page) => tableProblems(read(page)).map((problem) => `${page}, ${problem}`))
  assert.deepEqual(tables, [])
})

test('a table with a missing cell, without a header, or cut by a blank line is found', () => {
  const good = '| a | b |\n|---|:-:|\n| `x \\| y` | 2 |\n\ntext\n\n```\n| not | a table\n```\n'
  assert.deepEqual(tableProblems(good), [])
  assert.match(tableProblems('| a | b |\n|---|---|\n| 1 |\n').join(), /^line 3: 1 cells/)
  assert.match(tableProblems('| a | b |\n|---|---|\n| 1 | 2 |\n\n| 3 | 4 |\n').join(), /^line 5: rows without a header/)
  assert.match(tableProblems('| a | b |\n| 1 | 2 |\n').join(), /^line 1: rows without a header/)
  assert.match(tableProblems('| a | b |\n|---|\n| 1 | 2 |\n').join(), /^line 2: 1 cells/)
  assert.match(tableProblems('| a |\n|---|\n| 1 |\ntext\n').join(), /^line 4: no blank line/)
})

/** What a page may name: files of the repository, or of src/ by their folder. */
const FOLDERS = readdirSync(join(ROOT, 'src'), { withFileTypes: true }).filter((one) => one.isDirectory())
const NAMED = new RegExp(
  `\`((?:src|test|bench|prove|console|api|docs|${FOLDERS.map(({ name }) => name).join('|')})/[\\w./-]+\\.[a-z]+)\``,
  'g',
)

function missingFiles(page: string, text: string): string[] {
  const prose = proseLines(text)
    .map(({ line }) => line)
    .join('\n')
  return Array.from(prose.matchAll(NAMED), ([, file]) => file!)
    .filter((file) => !existsSync(join(ROOT, file)) && !existsSync(join(ROOT, 'src', file)))
    .map((file) => `${page} names ${file}`)
}

test('every file that a page names exists', () => {
  assert.deepEqual(
    pages.flatMap((page) => missingFiles(page, read(page))),
    [],
  )
  assert.deepEqual(missingFiles('p', '`intake/batcher.ts`, `intake/none.ts`, `src/none.ts`, `store/<driver>/x.ts`'), [
    'p names intake/none.ts',
    'p names src/none.ts',
  ])
})

/** docs/… in comments, messages and settings; a decision may be named by its number alone. */
function missingPages(text: string): string[] {
  return Array.from(text.matchAll(/\bdocs\/[\w/-]+(?:\.[a-z]+)?/g), ([path]) => path).filter(
    (path) => !existsSync(join(ROOT, path)) && !decisions.some((decision) => decision.startsWith(`${path}-`)),
  )
}

test('every page that code, tests or settings name exists', () => {
  const files = globSync(
    ['{src,console/src,prove,bench,test,api}/**/*.{ts,tsx,sql,yaml}', 'package.json', 'biome.json'],
    {
      cwd: ROOT,
    },
  ).filter((file) => !file.startsWith('test/docs/'))
  assert.ok(files.length > 300)
  assert.deepEqual(
    files.flatMap((file) => missingPages(read(file)).map((path) => `${file} names ${path}`)),
    [],
  )
  assert.deepEqual(missingPages('see docs/sending/errors.md, docs/internals/adr/0039 and docs/operations.md'), [
    'docs/operations.md',
  ])
})

/** The block of ARCHITECTURE.md that begins with src/. */
const tree = /```\n(src\/\n[^`]*)```/.exec(read('ARCHITECTURE.md'))?.[1] ?? ''

/** The folders of the drawing, with their path: two signs of drawing or four spaces for each level. */
function foldersOf(drawing: string): string[] {
  const path: string[] = []
  return Array.from(drawing.matchAll(/^((?:│ {3}| {4})*)[├└]── ([\w-]+)\/(?= |$)/gm), ([, indent = '', name = '']) => {
    path.length = indent.length / 4
    path.push(name)
    return path.join('/')
  })
}

test('ARCHITECTURE.md shows every folder of src, and no other', () => {
  const folders = readdirSync(join(ROOT, 'src'), { recursive: true, withFileTypes: true })
    .filter((one) => one.isDirectory())
    .map((one) => join(one.parentPath, one.name).slice(join(ROOT, 'src/').length))
  assert.ok(folders.length > 20)
  assert.deepEqual(foldersOf(tree).toSorted(), folders.toSorted())
  assert.deepEqual(foldersOf('src/\n├── a/   x\n│   └── b/\n└── c/\n    └── d/  y\n'), ['a', 'a/b', 'c', 'c/d'])
})

test('the glossary has at most 30 words', () => {
  const text = read('ARCHITECTURE.md')
  const glossary = text.slice(text.indexOf('## Glossary'), text.indexOf('## The tree'))
  const words = Array.from(glossary.matchAll(/^\| (?!Word|-)(.*?) \|/gm), ([, word]) => word!)
  assert.ok(words.length > 15 && words.length <= 30, `${words.length} words`)
  assert.equal(new Set(words).size, words.length)
})

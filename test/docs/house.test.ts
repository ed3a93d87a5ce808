// The papers of the house: links lead somewhere, decisions are short, nothing names where packages come from.

import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import test from 'node:test'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const papers = globSync(['*.md', 'docs/**/*.md'], { cwd: ROOT })
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8')

test('every relative link in the documents leads to a file', () => {
  assert.ok(papers.length > 10)
  for (const paper of papers) {
    for (const [, target = ''] of read(paper).matchAll(/\]\(([^)#]+)(?:#[^)]*)?\)/g)) {
      if (/^https?:/.test(target)) continue
      assert.ok(existsSync(join(ROOT, dirname(paper), target)), `${paper} links to ${target}`)
    }
  }
})

test('a decision has at most 60 lines, and the list of decisions names each', () => {
  const decisions = papers.filter((paper) => /^docs\/adr\/\d{4}-/.test(paper))
  const list = read('docs/adr/README.md')
  assert.ok(decisions.length > 0)
  for (const decision of decisions) {
    const name = decision.slice('docs/adr/'.length)
    assert.ok(read(decision).split('\n').length <= 61, `${decision} is too long`)
    assert.ok(list.includes(`(${name})`), `${name} is not in the list`)
  }
})

test('package.json, the lockfile and the documents name no registry host', () => {
  for (const file of ['package.json', 'package-lock.json', '.npmrc', ...papers]) {
    assert.doesNotMatch(read(file), /registry\.|npmjs|artifactory|"resolved": "https?:/, file)
  }
})

test('both start lines stand in the README as they are run', () => {
  const readme = read('README.md')
  assert.match(readme, /^npm ci && npm start$/m)
  assert.match(readme, /^npm ci && npm test$/m)
})

test('every command that the documents show exists', () => {
  const commands = read('src/cli/run.ts')
  for (const paper of papers) {
    for (const [, name = ''] of read(paper).matchAll(/\.\/intray ([a-z]+)/g)) {
      assert.match(commands, new RegExp(`\\b${name}: async`), `${paper} shows ./intray ${name}`)
    }
  }
})

// The documents of the project: nothing names where packages come from, and the commands that are shown exist.

import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const papers = globSync(['*.md', 'docs/**/*.md'], { cwd: ROOT })
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8')

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

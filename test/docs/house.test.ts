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

/** Each file that states a version, and where in it. */
const VERSIONS: Readonly<Record<string, RegExp>> = {
  'api/openapi.yaml': /^ {2}version: (.*)$/gm,
  'kits/typescript/package.json': /"version": "(.*)"/g,
  'kits/python/pyproject.toml': /^version = "(.*)"$/gm,
  'kits/wordpress/intray/intray.php': /^ \* Version: +(.*)$/gm,
  'kits/wordpress/intray/readme.txt': /^Stable tag: (.*)$/gm,
  'kits/examples/README.md': /intray-client-(.*?)\.tgz/g,
  'docs/sending/typescript.md': /intray-client-(.*?)\.tgz/g,
  'docs/operating/install.md': /intray-(\d[^/\s]*?)\.tgz/g,
  'deploy/kubernetes/deployment.yaml': /image: \S+:(\S+)$/gm,
}

test('the service, its contract, the kits and the pages that name a package have one version', () => {
  const { version } = JSON.parse(read('package.json')) as { version: string }
  for (const [file, pattern] of Object.entries(VERSIONS)) {
    const found = Array.from(read(file).matchAll(pattern), (match) => match[1])
    assert.ok(found.length > 0, `${file} states no version`)
    assert.deepEqual(new Set(found), new Set([version]), file)
  }
})

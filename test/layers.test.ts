// Every test file belongs to one layer, and the unit layer needs no server, no database and no build: what it imports
// from test/ starts none, and neither does the file itself.

import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, matchesGlob } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../', import.meta.url))
const FILES = globSync('test/**/*.test.ts', { cwd: ROOT })
const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  readonly scripts: Record<string, string>
}
const LAYERS = Object.keys(scripts).filter((name) => name.startsWith('test:'))

function filesOf(script: string): string[] {
  const globs = Array.from(scripts[script]!.matchAll(/'([^']+)'/g), ([, glob]) => glob!)
  return FILES.filter((file) => globs.some((glob) => matchesGlob(file, glob)))
}

/** What a unit test may not use, by the text of a file. */
const NOT_IN_UNIT: Record<string, RegExp> = {
  'opens a SQLite database': /from 'node:sqlite'|\bopenConnection\b/,
  'connects to PostgreSQL': /^import (?!type)[^\n]* from 'pg'|\bConnection\.open\b/m,
  'starts a process': /from 'node:child_process'/,
  'starts a server': /\.listen\(|from '[./]*src\/app\.ts'/,
  'opens a store': /from '[./]*src\/store\/open\.ts'/,
  'builds the console': /from '[./]*src\/cli\/(?:commands\/)?console-build\.ts'/,
  'hashes a password at full cost': /\bhashPassword\b/,
}

/** Needs the class of an error that the package makes, and connects to nothing. */
const MAY_IMPORT_PG = 'test/unit/store/postgres/failure.test.ts'

/** What a file does that no unit test may do, itself or through files of test/. */
function forbiddenIn(file: string, read: (file: string) => string): string[] {
  const seen = new Set<string>()
  const found: string[] = []
  const visit = (path: string): void => {
    if (seen.has(path)) return
    seen.add(path)
    const source = read(path)
    for (const [what, pattern] of Object.entries(NOT_IN_UNIT)) {
      if (pattern.test(source) && !(pattern === NOT_IN_UNIT['connects to PostgreSQL'] && path === MAY_IMPORT_PG))
        found.push(path === file ? `${file} ${what}` : `${file} imports ${path}, which ${what}`)
    }
    for (const [, specifier] of source.matchAll(/(?:from|import\()\s*'(\.[^']+)'/g)) {
      const target = join(dirname(path), specifier!)
      if (target.startsWith('test/')) visit(target)
    }
  }
  visit(file)
  return found
}

const readFile = (file: string): string => readFileSync(join(ROOT, file), 'utf8')

test('every test file is in one layer, and npm test runs all of them', () => {
  assert.deepEqual(LAYERS.toSorted(), ['test:api', 'test:browser', 'test:flow', 'test:kits', 'test:store', 'test:unit'])
  assert.ok(FILES.length > 100)
  for (const file of FILES) {
    const layers = LAYERS.filter((layer) => filesOf(layer).includes(file))
    assert.equal(layers.length, 1, `${file} is in ${layers.join(' and ') || 'no layer'}`)
  }
  assert.deepEqual(filesOf('test').toSorted(), FILES.toSorted())
})

test('unit tests start no server and no process, open no database, build and hash nothing', () => {
  // Those beside this one quote imports, as samples.
  const units = filesOf('test:unit').filter((file) => !matchesGlob(file, 'test/*.test.ts'))
  assert.ok(units.length > 50)
  assert.deepEqual(
    units.flatMap((file) => forbiddenIn(file, readFile)),
    [],
  )
})

const VIOLATIONS: Record<string, [source: string, complaint: RegExp]> = {
  'a unit test opens a file of SQLite': ["import { DatabaseSync } from 'node:sqlite'", /opens a SQLite/],
  'a unit test connects': ["import pg from 'pg'", /connects to PostgreSQL/],
  'a unit test starts a process': ["import { spawn } from 'node:child_process'", /starts a process/],
  'a unit test listens': ['createServer().listen(0)', /starts a server/],
  'a unit test opens a store': ["import { openStore } from '../../src/store/open.ts'", /opens a store/],
  'a unit test starts the service through a helper': ["import { x } from '../support/app.ts'", /app\.ts, which starts/],
  'a unit test makes a database through a helper': ["import { x } from '../store/suite.ts'", /which opens a store/],
  'a unit test runs a command': ["import { x } from '../support/command.ts'", /which starts a process/],
  'a unit test hashes': ["import { hashPassword } from '../../src/auth/password.ts'", /full cost/],
}
for (const [name, [source, complaint]] of Object.entries(VIOLATIONS)) {
  test(`it would be seen if ${name}`, () => {
    const found = forbiddenIn('test/unit/new.test.ts', (file) =>
      file === 'test/unit/new.test.ts' ? source : readFile(file),
    )
    assert.ok(
      found.some((one) => complaint.test(one)),
      `said only: ${found.join('; ')}`,
    )
  })
}

// The house as a test: who may import whom, and how files look. A room is a folder of src/, or a file that stands alone.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../', import.meta.url))
const SRC = join(ROOT, 'src')
/** Searched for import circles together. */
const TREES = ['src', 'bench', 'prove', 'console/src', 'kits/typescript/src'] as const
const MAX_LINES = 400

/** How an edge may be drawn. `type`: the import is gone at run time. `dynamic`: loaded only when used. */
type Edge = 'any' | 'type' | 'dynamic'

/** A message's way through the rooms. What is not in the table is not allowed. */
const MAY_IMPORT: Record<string, Record<string, Edge>> = {
  main: { cli: 'any' },
  // auth: a command mints tokens. processing: it claims as a processor does. intake: doctor reads stored messages as they
  // were read when they came in. store/contract: it tells the operator how a store was refused or failed.
  cli: {
    cli: 'any',
    app: 'any',
    config: 'any',
    auth: 'any',
    intake: 'any',
    processing: 'any',
    erasure: 'any',
    hooks: 'any',
    transfer: 'any',
    model: 'any',
    runtime: 'any',
    'store/open': 'any',
    'store/contract': 'any',
    // `./intray send` sends as every sender does.
    'kits/typescript': 'any',
  },
  app: {
    config: 'any',
    http: 'any',
    auth: 'any',
    intake: 'any',
    indexing: 'any',
    processing: 'any',
    erasure: 'any',
    hooks: 'any',
    maintenance: 'any',
    model: 'any',
    runtime: 'any',
    'store/open': 'any',
    'store/contract': 'type',
  },
  config: { model: 'any', runtime: 'any' },
  http: {
    http: 'any',
    auth: 'any',
    intake: 'any',
    processing: 'any',
    erasure: 'any',
    hooks: 'any',
    model: 'any',
    runtime: 'any',
    'store/contract': 'type',
  },
  // Between these there are no edges: app wires them.
  auth: { auth: 'any', model: 'any', runtime: 'any', 'store/contract': 'type' },
  intake: { intake: 'any', model: 'any', runtime: 'any', 'store/contract': 'type' },
  indexing: { indexing: 'any', model: 'any', runtime: 'any', 'store/contract': 'type' },
  processing: { processing: 'any', model: 'any', runtime: 'any', 'store/contract': 'type' },
  erasure: { erasure: 'any', model: 'any', runtime: 'any', 'store/contract': 'type' },
  // Reads requests; what it needs of a store is handed to it.
  hooks: { hooks: 'any', model: 'any', runtime: 'any' },
  transfer: { transfer: 'any', model: 'any', runtime: 'any', 'store/contract': 'type', 'store/event-columns': 'any' },
  maintenance: { maintenance: 'any', model: 'any', runtime: 'any', 'store/contract': 'type' },
  'store/open': { 'store/contract': 'any', 'store/sqlite': 'dynamic', 'store/postgres': 'dynamic' },
  'store/contract': { 'store/contract': 'type', model: 'type' },
  'store/migrations': { 'store/contract': 'any' },
  'store/event-columns': { 'store/contract': 'type', model: 'type' },
  'store/index-rows': { 'store/contract': 'type', 'store/event-columns': 'type', model: 'any' },
  'store/endpoint-rows': { 'store/contract': 'type', model: 'any' },
  'store/rows': { 'store/contract': 'type', 'store/event-columns': 'any', model: 'any', runtime: 'any' },
  'store/json-pages': { 'store/contract': 'type', model: 'any' },
  'store/append-apart': { 'store/contract': 'any' },
  'store/claim-around': { 'store/contract': 'type', model: 'any' },
  'store/calls-in-turn': { 'store/contract': 'any', model: 'any', runtime: 'any' },
  'store/token-list': { 'store/contract': 'type', 'store/rows': 'any' },
  'store/held-items': { 'store/contract': 'type' },
  'store/copy-tables': { 'store/contract': 'type', 'store/event-columns': 'any' },
  'store/copy-state': { 'store/contract': 'any', model: 'type' },
  'store/validate-items': { 'store/contract': 'type', 'store/event-columns': 'any' },
  'store/sqlite': driver('store/sqlite'),
  'store/postgres': driver('store/postgres'),
  model: { model: 'any' },
  runtime: { runtime: 'any' },
}

function driver(itself: string): Record<string, Edge> {
  return {
    [itself]: 'any',
    'store/contract': 'any',
    'store/migrations': 'any',
    'store/event-columns': 'any',
    'store/index-rows': 'any',
    'store/json-pages': 'any',
    'store/append-apart': 'any',
    'store/claim-around': 'any',
    'store/calls-in-turn': 'any',
    'store/endpoint-rows': 'any',
    'store/rows': 'any',
    'store/token-list': 'any',
    'store/held-items': 'any',
    'store/copy-tables': 'any',
    'store/copy-state': 'any',
    'store/validate-items': 'any',
    model: 'any',
    runtime: 'any',
  }
}

/** http may look, never write. */
const READ_SIDE = ['events', 'inbox', 'lists', 'traffic'].map((name) => `store/contract/${name}.ts`)

/** What only a driver may load. */
const DATABASE_PACKAGES = /^(node:sqlite|better-sqlite3|sqlite3|pg|pg-.*|postgres)$/
const DRIVER_ROOM = /^store\/(sqlite|postgres)$/

/** Where the name of a database may stand outside of its driver: where a URL is told apart, and where it is explained. */
const MAY_NAME_DATABASES = [
  'store/open.ts',
  'config.ts',
  'cli/commands/copy.ts',
  'cli/commands/import.ts',
  'cli/commands/backup.ts',
  'cli/commands/restore.ts',
]

const NAMES_THAT_SAY_NOTHING = /^(utils?|helpers?|types?|index|common|misc|shared|interfaces|constants)\.ts$/

type Sources = ReadonlyMap<string, string>

interface Import {
  readonly specifier: string
  readonly kind: 'type' | 'value' | 'dynamic'
}

/** `import { type A }` counts as a value: only `import type` is gone at run time. */
function importsOf(source: string): Import[] {
  const found: Import[] = []
  const statement = /^(?:import|export)\s+(type\s)?(?:[^'"`;]*?\sfrom\s+)?['"]([^'"]+)['"]/gm
  for (const [, type, specifier] of source.matchAll(statement)) {
    found.push({ specifier: specifier!, kind: type ? 'type' : 'value' })
  }
  for (const [, specifier] of source.matchAll(/\bimport\(\s*['"`]([^'"`]+)['"`]/g)) {
    found.push({ specifier: specifier!, kind: 'dynamic' })
  }
  // A worker is started by a URL: a way to reach a file all the same.
  for (const [, specifier] of source.matchAll(/new URL\(\s*['"`](\.[^'"`]+\.ts)['"`]/g)) {
    found.push({ specifier: specifier!, kind: 'value' })
  }
  return found
}

/** Without comments, roughly: enough to look for words. */
function codeOf(source: string): string {
  return source.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '')
}

/** From src/. */
const KIT = '../kits/typescript/src/'

function roomOf(path: string): string {
  if (path.startsWith(KIT)) return 'kits/typescript'
  const parts = path.replace(/\.ts$/, '').split('/')
  if (parts.length === 1) return parts[0]!
  return parts[0] === 'store' ? parts.slice(0, 2).join('/') : parts[0]!
}

function forbiddenImports(sources: Sources): string[] {
  const found: string[] = []
  for (const [path, source] of sources) {
    const room = roomOf(path)
    const allowed = MAY_IMPORT[room]
    if (!allowed) {
      found.push(`${path} is in no room of the house`)
      continue
    }
    for (const { specifier, kind } of importsOf(source)) {
      if (!specifier.startsWith('.')) {
        if (DATABASE_PACKAGES.test(specifier) && !DRIVER_ROOM.test(room)) found.push(`${path} loads ${specifier}`)
        continue
      }
      const target = join(dirname(path), specifier)
      const edge = allowed[roomOf(target)]
      if (!sources.has(target) && !kit.has(target)) found.push(`${path} imports ${target}, which is not there`)
      else if (!edge) found.push(`${path} may not import ${target}`)
      else if (edge === 'type' && kind !== 'type') found.push(`${path} may import ${target} as a type only`)
      else if (edge === 'dynamic' && kind === 'value') found.push(`${path} must load ${target} only when it is used`)
      if (room === 'http' && roomOf(target) === 'store/contract' && !READ_SIDE.includes(target)) {
        found.push(`${path} may look at the store, not write: ${target}`)
      }
    }
  }
  return found
}

/** Files that import each other, as values, as types or when used: none of them can be understood or moved alone. */
function circles(sources: Sources): string[] {
  const found: string[] = []
  const done = new Set<string>()
  const visit = (path: string, trail: readonly string[]): void => {
    if (trail.includes(path)) {
      found.push([...trail.slice(trail.indexOf(path)), path].join(' → '))
      return
    }
    if (done.has(path)) return
    for (const { specifier } of importsOf(sources.get(path) ?? '')) {
      if (specifier.startsWith('.')) visit(join(dirname(path), specifier), [...trail, path])
    }
    done.add(path)
  }
  for (const path of sources.keys()) visit(path, [])
  return found
}

function untidy(sources: Sources): string[] {
  const found: string[] = []
  for (const [path, source] of sources) {
    const name = path.split('/').at(-1)!
    const lines = source.trimEnd().split('\n').length
    if (lines > MAX_LINES) found.push(`${path} has ${lines} lines`)
    if (!/^[a-z0-9]+(-[a-z0-9]+)*\.ts$/.test(name)) found.push(`${path} is not named in kebab-case`)
    if (NAMES_THAT_SAY_NOTHING.test(name)) found.push(`${path} has a name that says nothing`)
    if (!source.startsWith('// ')) found.push(`${path} does not begin by saying what it is for`)
    if (/^export default\b|^export \{[^}]*\bas default\b/m.test(source)) found.push(`${path} has a default export`)
    if (/^export \* /m.test(source)) found.push(`${path} is a barrel`)
    const named = !DRIVER_ROOM.test(roomOf(path)) && !MAY_NAME_DATABASES.includes(path)
    if (named && /sqlite|postgres/i.test(codeOf(source))) found.push(`${path} names a database`)
  }
  return found
}

/** By path, relative to the folder. */
function readSources(folder: string): Map<string, string> {
  const sources = new Map<string, string>()
  for (const entry of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (/\.tsx?$/.test(entry)) sources.set(entry, readFileSync(join(folder, entry), 'utf8'))
  }
  return sources
}

const sources = readSources(SRC)
const kit: Sources = new Map(
  Array.from(readSources(join(ROOT, 'kits/typescript/src')), ([path, text]) => [join(KIT, path), text]),
)
const everything: Sources = new Map(
  TREES.flatMap((tree) => Array.from(readSources(join(ROOT, tree)), ([path, text]) => [`${tree}/${path}`, text])),
)

test('every import goes along an edge of the table', () => {
  assert.ok(sources.size > 50)
  assert.deepEqual(forbiddenImports(sources), [])
})

/** What leaves its tree, and what loads a package. */
function strayImports(tree: Sources, mayImport: RegExp): string[] {
  return Array.from(tree).flatMap(([path, source]) =>
    importsOf(source)
      .filter(
        ({ specifier }) => !mayImport.test(specifier.startsWith('.') ? join(dirname(path), specifier) : specifier),
      )
      .map(({ specifier }) => `${path} imports ${specifier}`),
  )
}

test('the client of senders imports nothing but Node; the console nothing of ours but that client and the snippets it shows', () => {
  assert.ok(kit.size > 15)
  assert.deepEqual(strayImports(kit, /^node:|^\.\.\/kits\/typescript\/src\//), [])
  const console = new Map(Array.from(everything).filter(([path]) => path.startsWith('console/src/')))
  const mayImport = /^console\/src\/|^kits\/typescript\/src\/|^kits\/examples\/snippets\/|^[a-z@]/
  assert.deepEqual(strayImports(console, mayImport), [])
  const stray = new Map([[`${KIT}new.ts`, "import x from 'undici'\nimport { y } from '../../../src/model/event.ts'"]])
  assert.equal(strayImports(stray, /^node:|^\.\.\/kits\/typescript\/src\//).length, 2)
})

test('no file imports itself by way of others, not even a type', () => {
  for (const tree of TREES) {
    assert.ok(Array.from(everything.keys()).filter((path) => path.startsWith(`${tree}/`)).length > 15, tree)
  }
  assert.deepEqual(circles(everything), [])
})

test('files are short, named for what they are, and say so first; nothing above a driver names a database', () => {
  assert.deepEqual(untidy(sources), [])
})

test('migrations are numbered, named and say what they are for; the index of SQLite has one text and no migrations', () => {
  const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.sql'))
  assert.ok(files.length > 0)
  for (const path of files) {
    assert.match(path, /^store\/((sqlite|postgres)\/migrations\/\d{4}_[a-z0-9_]+|sqlite\/index\/index)\.sql$/)
    assert.match(readFileSync(join(SRC, path), 'utf8'), /^-- /)
  }
})

test('the imports of a file are all found', () => {
  const source = `
import { a } from './a.ts'
import type { B } from '../b.ts'
import { type C, d } from "./c.ts"
import {
  type Long,
  longer,
} from './long.ts'
import './effect.ts'
import * as all from 'node:all'
export { e } from './e.ts'
export type { F } from './f.ts'
export const notAnImport = 'from nowhere'
const lazy = async () => (await import('./lazy.ts')).lazy
new Worker(new URL('./thread.ts', import.meta.url))
`
  assert.deepEqual(
    importsOf(source).map(({ specifier, kind }) => `${kind} ${specifier}`),
    [
      'value ./a.ts',
      'type ../b.ts',
      'value ./c.ts',
      'value ./long.ts',
      'value ./effect.ts',
      'value node:all',
      'value ./e.ts',
      'type ./f.ts',
      'dynamic ./lazy.ts',
      'value ./thread.ts',
    ],
  )
})

/** Made-up files, each of which breaks one rule: the checker must say so. */
const VIOLATIONS: Record<string, [path: string, source: string, complaint: RegExp]> = {
  'one service imports another': ['auth/new.ts', "import type { Accept } from '../intake/accept.ts'", /may not import/],
  'indexing imports intake': ['indexing/new.ts', "import { x } from '../intake/batcher.ts'", /may not import/],
  'a service imports the contract as a value': [
    'intake/new.ts',
    "import { StoreFailure } from '../store/contract/failure.ts'",
    /as a type only/,
  ],
  'an inline type import would load the file': [
    'intake/new.ts',
    "import { type Appender } from '../store/contract/append.ts'",
    /as a type only/,
  ],
  'a service opens a store': ['maintenance/new.ts', "import { openStore } from '../store/open.ts'", /may not import/],
  'http opens a store': ['http/new.ts', "import { openStore } from '../store/open.ts'", /may not import/],
  'http writes': ['http/new.ts', "import type { Appender } from '../store/contract/append.ts'", /not write/],
  'app knows a driver': [
    'app.ts',
    "import { packBatch } from './store/sqlite/journal/append-batch.ts'",
    /may not import/,
  ],
  'a driver is loaded whether used or not': ['store/open.ts', "import './sqlite/store.ts'", /only when it is used/],
  'a driver knows intake': ['store/sqlite/new.ts', "import { x } from '../../intake/batcher.ts'", /may not import/],
  'model imports runtime': ['model/new.ts', "import { newUuid } from '../runtime/id.ts'", /may not import/],
  'runtime imports model': ['runtime/new.ts', "import type { Tenant } from '../model/principal.ts'", /may not import/],
  'the contract imports a driver': [
    'store/contract/new.ts',
    "export { x } from '../sqlite/journal/append.ts'",
    /may not import/,
  ],
  'a database is loaded outside of a driver': ['cli/new.ts', "import { DatabaseSync } from 'node:sqlite'", /loads/],
  'a room nobody knows': ['lib/new.ts', '', /in no room/],
  'a file that is not there': ['http/new.ts', "import { x } from './gone.ts'", /not there/],
}
for (const [name, [path, source, complaint]] of Object.entries(VIOLATIONS)) {
  test(`it would be seen if ${name}`, () => {
    const found = forbiddenImports(new Map(sources).set(path, `// Made up.\n${source}\n`))
    assert.ok(
      found.some((one) => one.startsWith(path) && complaint.test(one)),
      `said only: ${found.join('; ')}`,
    )
  })
}

const UNTIDY: Record<string, [path: string, source: string, complaint: RegExp]> = {
  'a file grew too long': ['http/long.ts', `// Long.\n${'x()\n'.repeat(MAX_LINES)}`, /401 lines/],
  'a name is not in kebab-case': ['http/bigFile.ts', '// Named wrongly.', /kebab-case/],
  'a name says nothing': ['http/utils.ts', '// Everything.', /says nothing/],
  'a file does not say what it is for': ['http/mute.ts', "import './body.ts'", /does not begin/],
  'there is a default export': ['http/default.ts', '// Default.\nexport default 1', /default export/],
  'there is a barrel': ['http/all.ts', "// All.\nexport * from './body.ts'", /barrel/],
  'a service asks which database it is': [
    'intake/which.ts',
    "// Asks.\nif (driver === 'sqlite') x()",
    /names a database/,
  ],
}
for (const [name, [path, source, complaint]] of Object.entries(UNTIDY)) {
  test(`it would be seen if ${name}`, () => {
    const found = untidy(new Map([[path, source]]))
    assert.equal(found.length, 1)
    assert.match(found[0]!, complaint)
  })
}

const CIRCLES: Record<string, [ofOne: string, ofOther: string]> = {
  'two files imported each other': ["import { b } from './b.ts'", "import { a } from './a.ts'"],
  'one file imported another that needs a type of it': [
    "import { b } from './b.ts'",
    "import type { A } from './a.ts'",
  ],
  'two files imported types of each other': ["import type { B } from './b.ts'", "export type { A } from './a.ts'"],
  'a file that is loaded when used imported its user': ["await import('./b.ts')", "import { a } from './a.ts'"],
}
for (const [name, [ofOne, ofOther]] of Object.entries(CIRCLES)) {
  test(`it would be seen if ${name}`, () => {
    for (const tree of TREES) {
      const pair = new Map(everything).set(`${tree}/a.ts`, ofOne).set(`${tree}/b.ts`, ofOther)
      assert.deepEqual(circles(pair), [`${tree}/a.ts → ${tree}/b.ts → ${tree}/a.ts`])
    }
  })
}

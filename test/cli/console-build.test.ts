// The console is built where it is served: once for each version of its sources, in one step, and without harm if it fails.

import assert from 'node:assert/strict'
import { cpSync, existsSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { buildConsole } from '../../src/cli/console-build.ts'
import { ROOT } from '../support/process.ts'
import { tempFolder } from '../support/temp.ts'

/** The console's sources, without what was built of them. */
function copyOfSources(): string {
  const root = tempFolder('console-build')
  const folder = join(root, 'console/')
  cpSync(join(ROOT, 'console'), folder, {
    recursive: true,
    filter: (path) => !/\/(dist[^/]*|node_modules)$/.test(path),
  })
  // What its sources use of the kits.
  for (const used of ['kits/typescript/src', 'kits/examples/snippets'])
    cpSync(join(ROOT, used), join(root, used), { recursive: true })
  // What its own settings for TypeScript extend.
  cpSync(join(ROOT, 'tsconfig.json'), join(root, 'tsconfig.json'))
  symlinkSync(join(ROOT, 'node_modules'), join(root, 'node_modules'))
  return folder
}

test('it is built once, said in two lines, and again only after a change of the sources', async () => {
  const folder = copyOfSources()
  const lines: string[] = []
  const build = () => buildConsole({ folder, say: (line) => lines.push(line) })
  assert.equal(await build(), 'built')
  assert.match(lines.join('\n'), /^Building the console .*\nThe console is built \([\d.]+ s\)\.$/)
  const page = readFileSync(join(folder, 'dist/index.html'), 'utf8')
  assert.match(page, /<script type="module" crossorigin src="\/console\/assets\/index-[\w-]+\.js">/)
  assert.doesNotMatch(page, /<script(?![^>]* src=)|<style|style=|https?:/, 'nothing inline, no other host')
  assert.equal(statSync(join(folder, 'dist/index.html')).mode & 0o777, 0o644, 'whoever serves it can read it')
  assert.equal(await build(), 'up to date')
  assert.equal(lines.length, 2)
  writeFileSync(join(folder, 'src/styles/base.css'), 'html { color: teal; }')
  assert.equal(await build(), 'built')
  const [css] = readdirSync(join(folder, 'dist/assets')).filter((name) => name.endsWith('.css'))
  assert.match(readFileSync(join(folder, 'dist/assets', css!), 'utf8'), /teal/)
  assert.deepEqual(
    readdirSync(folder).filter((name) => name.startsWith('dist')),
    ['dist'],
    'nothing is left beside it',
  )
})

test('sources that cannot be built are told in a line, an old build is not served, and nothing is thrown', async () => {
  const folder = copyOfSources()
  const lines: string[] = []
  writeFileSync(join(folder, 'src/main.tsx'), 'import { nothing } from "./nowhere.ts"')
  assert.equal(await buildConsole({ folder, say: (line) => lines.push(line) }), 'failed')
  assert.match(lines.at(-1)!, /^The console could not be built: .*nowhere.* Everything else works\./s)
  assert.equal(existsSync(join(folder, 'dist')), false)
  assert.deepEqual(
    readdirSync(folder).filter((name) => name.startsWith('dist')),
    [],
  )
})

test('the build gets only what it needs of the environment, and no secret of the service', async () => {
  const folder = copyOfSources()
  writeFileSync(
    join(folder, 'vite.config.ts'),
    `import { writeFileSync } from 'node:fs'
    writeFileSync(new URL('environment.json', import.meta.url), JSON.stringify(process.env))
    throw new Error('enough')`,
  )
  const secrets = { INTRAY_DATABASE_URL: 'postgres://intray:SECRET@127.0.0.1/intray', NPM_TOKEN: 'SECRET' }
  Object.assign(process.env, secrets)
  try {
    await buildConsole({ folder, say: () => {} })
  } finally {
    for (const name of Object.keys(secrets)) Reflect.deleteProperty(process.env, name)
  }
  const seen = readFileSync(join(folder, 'environment.json'), 'utf8')
  assert.doesNotMatch(seen, /SECRET|INTRAY/)
  assert.match(seen, /"NODE_ENV":"production"/)
  assert.match(seen, /"PATH":/)
})

test('two servers that build at the same time leave one build', async () => {
  const folder = copyOfSources()
  const outcomes = await Promise.all([1, 2].map(() => buildConsole({ folder, say: () => {} })))
  assert.ok(outcomes.includes('built'), outcomes.join())
  assert.equal(await buildConsole({ folder, say: () => {} }), 'up to date')
})

import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { fileURLToPath } from 'node:url'
import { defaultText, SETTING_NAMES, SETTINGS, variableName } from '../../src/config.ts'

test('docs/operating/configuration.md is the settings table: names, defaults and descriptions, in its order', () => {
  const text = readFileSync(new URL('../../docs/operating/configuration.md', import.meta.url), 'utf8')
  const rows = [...text.matchAll(/^\| `(INTRAY_\w+)` \| (.*?) \| (.*) \|$/gm)].map((match) => match.slice(1))
  const expected = SETTING_NAMES.map((name) => [
    variableName(name),
    defaultText(name) === '' ? 'not set' : `\`${defaultText(name)}\``,
    SETTINGS[name].about,
  ])
  assert.deepEqual(rows, expected)
})

test('every setting that the documents name exists', () => {
  const known = SETTING_NAMES.flatMap((name) => [variableName(name), `${variableName(name)}_FILE`])
  const root = fileURLToPath(new URL('../../', import.meta.url))
  // INTRAY_URL there is a variable of Vite, not of the service.
  const pages = globSync(['*.md', 'docs/**/*.md'], { cwd: root }).filter(
    (page) => !page.endsWith('console-development.md'),
  )
  assert.ok(pages.length > 40)
  const kits = globSync('kits/php/*.php', { cwd: root }).map((file) => readFileSync(join(root, file), 'utf8'))
  const ofKits = kits.flatMap((kit) => Array.from(kit.matchAll(/'(INTRAY_[A-Z_]+[A-Z])'/g), ([, name]) => name!))
  assert.ok(ofKits.includes('INTRAY_OUTBOX'))
  for (const page of pages) {
    const text = readFileSync(join(root, page), 'utf8')
    // Settings of the kits are read by the kits.
    const names = page.startsWith('docs/sending/') ? [...known, ...ofKits] : known
    for (const [name] of text.matchAll(/INTRAY_[A-Z_]+[A-Z]/g)) assert.ok(names.includes(name), `${page} names ${name}`)
  }
})

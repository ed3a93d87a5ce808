import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import { defaultText, SETTING_NAMES, SETTINGS, variableName } from '../../src/config.ts'

test('docs/configuration.md is the settings table: names, defaults and descriptions, in its order', () => {
  const text = readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8')
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
  for (const file of [
    'README.md',
    'SECURITY.md',
    'docs/operations.md',
    'docs/storage.md',
    'docs/inbox.md',
    'docs/console.md',
    'docs/errors.md',
    'docs/configuration.md',
    'docs/security.md',
    'docs/adr/0025-too-many-requests.md',
    'docs/adr/0026-what-is-given-up-first.md',
  ]) {
    const text = readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8')
    for (const [name] of text.matchAll(/INTRAY_[A-Z_]+[A-Z]/g)) assert.ok(known.includes(name), `${file} names ${name}`)
  }
})

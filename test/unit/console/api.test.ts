// The console's client is the contract: nothing in it that api/openapi.yaml does not have.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import { apiTypes, CONTRACT, SCHEMA_FILE } from '../../../kits/typescript/scripts/api-types.ts'
import { addressOf } from '../../../console/src/api/client.ts'

const document = parse(readFileSync(CONTRACT, 'utf8')) as { readonly paths: Record<string, object> }
const SOURCES = fileURLToPath(new URL('../../../console/src/', import.meta.url))
const sources = readdirSync(SOURCES, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name) && entry.name !== 'schema.ts')
  .map((entry) => ({ name: entry.name, text: readFileSync(join(entry.parentPath, entry.name), 'utf8') }))

test('the types of the client are those of the contract: npm run api -w @intray/client', () => {
  assert.equal(readFileSync(SCHEMA_FILE, 'utf8'), apiTypes(document))
})

test('the control: a field that the contract drops changes the types, so that what uses it no longer compiles', () => {
  const other = structuredClone(document) as unknown as {
    components: { schemas: { Event: { properties: Record<string, unknown> } } }
  }
  delete other.components.schemas.Event.properties.snippet
  assert.notEqual(apiTypes(other as never), apiTypes(document))
})

test('every call in the console names an operation of the contract', () => {
  const operations = new Set(
    Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    ),
  )
  const used = sources.flatMap(({ text }) =>
    Array.from(text.matchAll(/'((?:GET|POST|DELETE) \/[^']+)'/g), ([, name]) => name!),
  )
  assert.ok(new Set(used).size >= 20, `${used.length} calls were found`)
  for (const name of used) assert.ok(operations.has(name), name)
})

test('there is no other way from the console to a server', () => {
  // The snippets are text, for other programs.
  const own = sources.filter(({ name }) => name !== 'snippets.ts')
  const asking = own.filter(({ text }) => /\bfetch\(|XMLHttpRequest|WebSocket|EventSource\(|sendBeacon/.test(text))
  assert.deepEqual(
    asking.map(({ name }) => name),
    ['client.ts'],
  )
  for (const { name, text } of own) {
    assert.doesNotMatch(
      text,
      /dangerouslySetInnerHTML|innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(/,
      name,
    )
    assert.doesNotMatch(text, /https?:\/\/(?!here')/, name)
    assert.doesNotMatch(text, /from '[^']*\.\.\/\.\.\/\.\.\/src\//, `${name} imports nothing of the service`)
  }
})

test('what stands in an address is encoded', () => {
  assert.equal(
    addressOf('/v1/{id}/x', { id: '../a b' }, { q: 'ä&b', none: undefined }),
    '/v1/..%2Fa%20b/x?q=%C3%A4%26b',
  )
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { warningsHeader } from '../../../src/http/warnings-header.ts'
import { scanWhole, warningsOf } from '../../../src/model/message-scan.ts'

const headerOf = (text: string) => warningsHeader(warningsOf(scanWhole(Buffer.from(text))))

test('the header names each field with both types, and each look-alike with the documented name', () => {
  assert.equal(
    headerOf('{"meta":{"form_id":"12"},"contact":[],"source-ref":1}'),
    [
      'unexpected-type;field="contact";expected="object";got="array"',
      'unexpected-type;field="meta.form_id";expected="integer";got="string"',
      'look-alike;field="source-ref";expected="source_ref"',
    ].join(', '),
  )
})

test('a body cannot make the header long, nor put other text into it', () => {
  const inner = (...keys: string[]) => `{${keys.map((key) => `"${key}":true`).join()}}`
  const many = Array.from({ length: 512 }, (_, bits) =>
    Array.from('sourceref', (letter, at) => (bits & (1 << at) ? letter.toUpperCase() : letter)).join(''),
  )
  const header = headerOf(
    `{"contact":${inner('name', 'email')},"message":${inner('type', 'text')},"meta":${inner('form_id', 'page_url')},` +
      `"sourceRef\\r\\nX: y":1,"channel-ref":1,${many.map((name) => `"${name}":1`).join()}}`,
  )
  assert.ok(header.length > 300 && header.length < 700, `${header.length} characters`)
  assert.match(header, /^[-\w;=", .]+$/)
})

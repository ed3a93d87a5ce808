import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { mintToken } from '../../../src/auth/token.ts'
import { redactBeginning, redactBytes, redactText } from '../../../src/runtime/redact.ts'

test('a token in a text is masked, wherever it stands', () => {
  const { token } = mintToken()
  const secret = token.slice(15)
  for (const text of [
    token,
    `Bearer ${token}`,
    `?token=${token}&x=1`,
    `"${token}"`,
    `${token}${token}`,
    token.toUpperCase(),
  ]) {
    const shown = redactText(text)
    assert.ok(!shown.includes(secret) && !shown.includes(secret.toUpperCase()), shown)
    assert.match(shown, /itr_\[redacted\]/i)
  }
})

test('part of a token is masked too, at its end or at its beginning', () => {
  const { token } = mintToken()
  assert.equal(redactText(token.slice(0, 20)), 'itr_[redacted]')
  assert.equal(redactText(`${token}x`), 'itr_[redacted]')
  for (const cut of [1, 2, 3, 4, 15])
    assert.ok(!redactText(token.slice(cut)).includes(token.slice(15)), `without ${cut}`)
  assert.ok(!redactText(token.replace('_', '%5F')).includes(token.slice(15)))
})

test('a token that is cut off is masked whatever stands right before it', () => {
  const { token } = mintToken()
  const secret = token.slice(15)
  for (const before of ['', 'x', '_', 'x'.repeat(27), 'x'.repeat(1000), '0123456789'.repeat(10)]) {
    for (const length of [20, 30, 44]) {
      const text = before + token.slice(0, length)
      assert.ok(!redactText(text).includes(secret.slice(0, 4)), `${before.length} before, ${length} of it`)
      assert.ok(
        !Buffer.from(redactBytes(Buffer.from(text)))
          .toString()
          .includes(secret.slice(0, 4)),
      )
    }
  }
})

test('other text is left as it is', () => {
  for (const text of ['', 'nothing here', 'WordPress/7.1', 'itr', 'itr_', 'citron_'])
    assert.equal(redactText(text), text)
})

test('in bytes, a token is masked and everything else keeps its place', () => {
  const { token } = mintToken()
  const before = Buffer.from([0xff, 0x00, 0x80])
  const masked = Buffer.from(redactBytes(Buffer.concat([before, Buffer.from(` ${token} "`), before])))
  assert.equal(masked.length, token.length + 9)
  assert.ok(masked.subarray(0, 3).equals(before) && masked.subarray(-3).equals(before))
  assert.equal(masked.subarray(4, -5).toString(), `itr_${'x'.repeat(token.length - 4)}`)
})

test('bytes without a token come back as they were', () => {
  fc.assert(
    fc.property(fc.uint8Array(), (bytes) => {
      if (Buffer.from(bytes).toString('latin1').toLowerCase().includes('itr_')) return
      assert.deepEqual(new Uint8Array(redactBytes(bytes)), bytes)
    }),
  )
})

test('a token that is broken up is masked to its end', () => {
  for (const broken of ['itr_0123456789_abc%4CwAoqWscUoZAJMb3SI1l6', 'itr_0123456789_abcdefgh-ijklmnopqrstuvwxyz']) {
    assert.equal(redactText(`/x/${broken} y`), '/x/itr_[redacted] y')
  }
})

test('a secret that the end of what is looked at cuts through is not shown, however much was masked before it', () => {
  const secret = 'S3cr3tS3cr3tS3cr3tS3cr3tS3cr3tS3cr3t'
  for (let at = 0; at < 400; at++) {
    const shown = redactBeginning(`${'x'.repeat(200)} ${'.'.repeat(at)} ${secret} ${'y '.repeat(200)}`, 200)
    assert.ok(!shown.includes('S3cr'), `${at}: ${shown}`)
    assert.ok(shown.length <= 200)
  }
  assert.equal(redactBeginning('short enough', 200), 'short enough')
})

test('masks what the plain form of its pattern masks, which is slow on hostile text', () => {
  const plain = /[0-9A-Za-z]*itr_[^\s"'<>,;]+|[0-9A-Za-z]{30,}/gi
  const piece = fc.constantFrom(
    ...['itr_', 'ITR_', 'itr', '_', 'a', 'B9', 'itr_abc', 'é', '\u017f', ' ', '"', ',', ';'],
    ...['x'.repeat(29), 'y'.repeat(30)],
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
      const text = pieces.join('')
      const masked = text.replace(plain, (found) => `${/^itr_/i.test(found) ? found.slice(0, 4) : ''}[redacted]`)
      assert.equal(redactText(text), masked)
    }),
    { numRuns: 5000 },
  )
})

test('a token in UTF-16 or UTF-32 is masked, and everything else keeps its place', () => {
  const { token } = mintToken()
  const text = `{"a":"${token}","Grüße":"日本語"}`
  const masked = text.replace(token, `itr_${'x'.repeat(token.length - 4)}`)
  const encodings: Record<string, (given: string) => Buffer> = {
    'UTF-16LE': (given) => Buffer.from(given, 'utf16le'),
    'UTF-16BE': (given) => Buffer.from(given, 'utf16le').swap16(),
    'UTF-32LE': (given) => Buffer.from(Uint32Array.from(Array.from(given, (one) => one.codePointAt(0)!)).buffer),
  }
  for (const [name, encode] of Object.entries(encodings)) {
    assert.deepEqual(Buffer.from(redactBytes(encode(text))), encode(masked), name)
  }
})

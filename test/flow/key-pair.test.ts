import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { KeyPairRefused, readKeyPair } from '../../src/runtime/key-pair.ts'
import { makeCertificate, newPairFiles, noOpenssl } from '../support/certificates.ts'
import { tempFolder } from '../support/temp.ts'

function problemsOf(files: { cert: string; key: string }): readonly string[] {
  try {
    readKeyPair(files)
  } catch (error) {
    assert.ok(error instanceof KeyPairRefused)
    return error.problems
  }
  return []
}

test('a pair is read with the fingerprint and the end of its certificate', { skip: noOpenssl }, () => {
  const made = makeCertificate(3)
  const pair = readKeyPair(newPairFiles(made))
  assert.equal(pair.fingerprint, made.fingerprint)
  const days = (pair.expiresAt - Date.now()) / 86_400_000
  assert.ok(days > 2.9 && days <= 3.01, String(days))
})

test('what is wrong with both files is reported together, each with its setting', () => {
  const folder = tempFolder('key-pair')
  const files = { cert: join(folder, 'none.pem'), key: join(folder, 'nothing.pem') }
  assert.deepEqual(problemsOf(files), [
    `INTRAY_TLS_CERT: ${files.cert} cannot be read (ENOENT).`,
    `INTRAY_TLS_KEY: ${files.key} cannot be read (ENOENT).`,
  ])
  for (const file of Object.values(files)) writeFileSync(file, 'no PEM')
  assert.deepEqual(problemsOf(files), [
    `INTRAY_TLS_CERT: ${files.cert} is no certificate in PEM.`,
    `INTRAY_TLS_KEY: ${files.key} is no private key in PEM without a passphrase.`,
  ])
})

test('a key of another certificate, and one with a passphrase, are refused', { skip: noOpenssl }, () => {
  const [one, other] = [makeCertificate(), makeCertificate()]
  const swapped = newPairFiles({ cert: one.cert, key: other.key })
  assert.deepEqual(problemsOf(swapped), [
    `INTRAY_TLS_KEY: ${swapped.key} is the key of another certificate than ${swapped.cert}.`,
  ])
  const files = newPairFiles(one)
  const args = ['pkcs8', '-topk8', '-in', files.key, '-out', `${files.key}.locked`, '-passout', 'pass:secret']
  execFileSync('openssl', args, { stdio: 'pipe' })
  assert.match(readFileSync(`${files.key}.locked`, 'utf8'), /ENCRYPTED/)
  assert.match(problemsOf({ ...files, key: `${files.key}.locked` }).join(), /without a passphrase\.$/)
})

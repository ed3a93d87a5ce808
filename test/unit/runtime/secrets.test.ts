import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { parseSecretsKey, Secrets, SecretsKeyMissing } from '../../../src/runtime/secrets.ts'
import { tempFolder } from '../../support/temp.ts'

const KEY = Buffer.alloc(32, 7)
const nothingSealed = async () => false
const somethingSealed = async () => true

const keyFile = () => join(tempFolder('secrets'), 'intray.secrets.key')

describe('the key of the settings', () => {
  test('is 32 bytes in base64, base64url or hexadecimal', () => {
    const bytes = Buffer.alloc(32, 0xfb)
    for (const text of [
      bytes.toString('base64'),
      bytes.toString('base64url'),
      bytes.toString('hex'),
      ` ${bytes.toString('base64')}\n`,
    ])
      assert.deepEqual(parseSecretsKey(text), bytes, text)
    for (const text of ['', 'x', bytes.toString('hex').slice(1), bytes.subarray(1).toString('base64'), 'x'.repeat(65)])
      assert.equal(parseSecretsKey(text), null, text)
  })

  test('is used, and no file is made', async () => {
    const file = keyFile()
    const secrets = new Secrets({ key: KEY, file })
    const sealed = (await secrets.boxForSealing(nothingSealed)).seal('hook', 'row', 'secret')
    assert.equal(new Secrets({ key: KEY, file: null }).box().open('hook', 'row', sealed), 'secret')
    assert.ok(!existsSync(file))
    assert.equal(secrets.source, 'INTRAY_SECRETS_KEY')
  })

  test('is asked for where there is no file beside the database', async () => {
    const secrets = new Secrets({ key: null, file: null })
    assert.throws(() => secrets.box(), /INTRAY_SECRETS_KEY is not set/)
    await assert.rejects(secrets.boxForSealing(nothingSealed), SecretsKeyMissing)
  })
})

describe('the key file', () => {
  test('is made at the first seal, readable for its user only, and used by others from then on', async () => {
    const file = keyFile()
    const reader = new Secrets({ key: null, file })
    assert.throws(() => reader.box(), SecretsKeyMissing)
    assert.ok(!existsSync(file), 'reading makes no key')
    const sealed = (await new Secrets({ key: null, file }).boxForSealing(nothingSealed)).seal('hook', 'row', 'secret')
    assert.equal(statSync(file).mode & 0o777, 0o600)
    assert.deepEqual(readdirSync(join(file, '..')), ['intray.secrets.key'])
    assert.equal(reader.box().open('hook', 'row', sealed), 'secret')
    const copied = new Secrets({ key: parseSecretsKey(readFileSync(file, 'utf8')), file: null })
    assert.equal(copied.box().open('hook', 'row', sealed), 'secret')
  })

  test('is one, however many processes make it at once', async () => {
    const file = keyFile()
    const boxes = await Promise.all(
      Array.from({ length: 8 }, () => new Secrets({ key: null, file }).boxForSealing(nothingSealed)),
    )
    const sealed = boxes[0]!.seal('hook', 'row', 'secret')
    for (const box of boxes) assert.equal(box.open('hook', 'row', sealed), 'secret')
  })

  test('is not replaced once secrets were sealed: the message names the file', async () => {
    const file = keyFile()
    const secrets = new Secrets({ key: null, file })
    await assert.rejects(secrets.boxForSealing(somethingSealed), (error: Error) => error.message.includes(file))
    assert.ok(!existsSync(file))
  })

  test('that holds something else is named, and left as it is', async () => {
    const file = keyFile()
    writeFileSync(file, 'not a key\n')
    await assert.rejects(new Secrets({ key: null, file }).boxForSealing(nothingSealed), /holds no key/)
    assert.equal(readFileSync(file, 'utf8'), 'not a key\n')
  })

  test('that cannot be written is named', async () => {
    const folder = tempFolder('secrets')
    const file = join(folder, 'missing', 'intray.secrets.key')
    await assert.rejects(new Secrets({ key: null, file }).boxForSealing(nothingSealed), /could not be written/)
  })
})

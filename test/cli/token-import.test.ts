// `./intray token import`: senders go on with the tokens of an older system, on a running server.

import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { importToken } from '../../src/auth/import-tokens.ts'
import { readTokenList } from '../../src/auth/token-list-file.ts'
import { drivers } from '../support/drivers.ts'
import { createToken, withStore } from '../support/journal.ts'
import { intrayJson } from '../support/command.ts'
import { post } from '../support/load.ts'
import { intray, startServer } from '../support/process.ts'
import { tempFolder } from '../support/temp.ts'

const OLD = 'old-system-token-1'
const EXPIRED = 'old-system-token-2'
const digest = (token: string) => hash('sha256', token)

function tokenFile(text: string): string {
  const file = join(tempFolder('tokens'), 'tokens')
  writeFileSync(file, text)
  return file
}

const LIST = tokenFile(`name,account,company,scope,sha256,expires
contact form,7,42,cf,${digest(OLD)},
closed form,7,42,cf,${digest(EXPIRED)},2020-01-01T00:00:00Z
`)

for (const driver of drivers) {
  test(`${driver.name}: an imported token works on a running server, and is listed, disabled and rotated like others`, async (t) => {
    const url = await driver.newDatabase()
    const env = { INTRAY_DATABASE_URL: url }
    const own = await withStore(url, (store) => createToken(store), 'server')
    const server = await startServer(t, env)
    const send = async (token: string, ref = 'a') => {
      const { status, text } = await post(server.port, token, `{"source_ref":"${ref}"}`)
      const answer = JSON.parse(text) as { error?: string; duplicate?: boolean }
      return [status, answer.error ?? answer.duplicate ?? false]
    }
    assert.deepEqual(await send(OLD), [401, 'invalid_token'])

    const counts = { ok: true, created: 2, present: 0, refused: 0 }
    assert.deepEqual(await intrayJson(['token', 'import', LIST], env), counts)
    assert.deepEqual(await send(OLD), [200, false])
    assert.deepEqual(await send(own), [200, true], 'of the same tenant')
    assert.deepEqual(await send(EXPIRED), [401, 'token_expired'])
    for (const wrong of [`${OLD}x`, OLD.toUpperCase(), digest(OLD), 'x', `itr_${OLD}`]) {
      assert.deepEqual(await send(wrong), [401, 'invalid_token'], wrong)
    }
    assert.deepEqual(await intrayJson(['token', 'import', LIST], env), { ...counts, created: 0, present: 2 })

    const listed = (await intray(['token', 'list', '--json'], env)).stdout.toString().trim().split('\n')
    const tokens = listed.map((line) => JSON.parse(line) as Record<string, unknown>)
    const { key_id: keyId, scope } = tokens.find(({ label }) => label === 'contact form')!
    assert.deepEqual([tokens.length, scope], [3, 'cf'])
    assert.match(String(keyId), /^imported-[0-9a-f]{16}$/)
    const [entry] = await withStore(url, (store) => store.operators.listAudit(null, 9))
    assert.deepEqual([entry?.action, entry?.tenant], ['token_import', { accountId: 7, companyId: 42 }])

    await intrayJson(['token', 'disable', String(keyId)], env)
    assert.deepEqual(await send(OLD), [401, 'token_disabled'])
    await intrayJson(['token', 'enable', String(keyId)], env)
    assert.deepEqual(await send(OLD), [200, true])
    const { token } = await intrayJson(['token', 'rotate', String(keyId)], env)
    assert.deepEqual(await send(String(token)), [200, true], 'dedupe does not depend on the token')
    assert.deepEqual(await send(OLD), [401, 'token_disabled'])
    server.child.kill('SIGTERM')
    assert.equal(await server.exited, 0)
    const log = server.stdout() + server.stderr()
    for (const secret of [OLD, digest(OLD)]) assert.ok(!log.includes(secret), 'neither token nor digest is logged')
    assert.ok(log.includes(String(keyId)))
  })

  test(`${driver.name}: a copy of the database knows them too`, async () => {
    const url = await driver.newDatabase()
    await withStore(url, async () => {}, 'server')
    await intrayJson(['token', 'import', LIST], { INTRAY_DATABASE_URL: url })
    const target = await drivers.find((one) => one !== driver)!.newDatabase()
    await intrayJson(['copy', '--from', url, '--to', target], {})
    const again = await intrayJson(['token', 'import', LIST], { INTRAY_DATABASE_URL: target })
    assert.deepEqual([again.created, again.present], [0, 2])
  })
}

for (const driver of drivers) {
  test(`${driver.name}: a token that two imports bring at once is there once, and neither fails`, async () => {
    const url = await driver.newDatabase()
    await withStore(
      url,
      async ({ tokens }) => {
        const [listed] = readTokenList(`account,company,sha256\n7,42,${digest('one')}\n`)
        const outcomes = await Promise.all([1, 2].map((at) => importToken(tokens, listed!, at)))
        assert.deepEqual(outcomes.map(({ outcome }) => outcome).toSorted(), ['created', 'present'])
        assert.equal((await tokens.list()).length, 1)
      },
      'server',
    )
  })
}

test('tokens of another Intray come with their key ids; one that is here for another tenant is refused', async () => {
  const url = await drivers[0]!.newDatabase()
  const env = { INTRAY_DATABASE_URL: url }
  const token = await withStore(url, (store) => createToken(store), 'server')
  const keyId = token.split('_')[1]!
  const line = (company: number, id: string) =>
    `{"account":7,"company":${company},"scope":"cf","sha256":"${digest(token)}","key_id":"${id}"}\n`
  const same = await intrayJson(['token', 'import', tokenFile(line(42, keyId))], env)
  assert.deepEqual([same.created, same.present], [0, 1])
  const other = await intray(['token', 'import', tokenFile(line(43, keyId))], env)
  assert.deepEqual([other.code, other.stderr.includes(`token ${keyId} is here with another`)], [1, true], other.stderr)

  const damaged = tokenFile(`account,company,sha256\n1,1,${digest('x')}\n1,1,secret\n`)
  const refused = await intray(['token', 'import', damaged], env)
  assert.deepEqual([refused.code, /Line 3: sha256.*No token was imported/.test(refused.stderr)], [1, true])
  assert.equal((await withStore(url, (store) => store.tokens.list())).length, 1)
})

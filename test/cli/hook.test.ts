// `./intray hook` without a server: what it makes, prints and refuses; and what doctor and backup say of the key of secrets.

import assert from 'node:assert/strict'
import { existsSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { intrayJson, newDatabaseEnv } from '../support/command.ts'
import { createToken, withStore } from '../support/journal.ts'
import { newPostgresDatabase } from '../support/postgres/databases.ts'
import { intray } from '../support/process.ts'

const newEnv = () => newDatabaseEnv('cli-hook')
const CREATE = ['hook', 'create', '--account', '7', '--company', '42']

type Env = Awaited<ReturnType<typeof newEnv>>
const folderOf = ({ INTRAY_DATABASE_URL: url }: Env) => dirname(url.slice('sqlite:'.length))
const keyFileOf = (env: Env) => join(folderOf(env), 'intray.secrets.key')

function fileIn(env: Env, name: string, text: string): string {
  const file = join(folderOf(env), name)
  writeFileSync(file, text)
  return file
}

test('create, show, list, disable, enable and rotate: the address is shown, the secret once', async () => {
  const env = await newEnv()
  const settings = { ...env, INTRAY_PUBLIC_URL: 'https://in.example.com' }
  const made = await intrayJson([...CREATE, '--recipe', 'telegram', '--name', 'bot', '--max-body', '2048'], settings)
  const keyId = String(made.key_id)
  assert.match(String(made.url), /^https:\/\/in\.example\.com\/v1\/hooks\/ith_\w{47}$/)
  assert.match(String(made.secret), /^\w{32}$/)
  assert.deepEqual(
    [made.recipe, made.scope, made.max_body_bytes, made.state],
    ['telegram/1', 'telegram', 2048, 'active'],
  )
  assert.equal(statSync(keyFileOf(env)).mode & 0o777, 0o600)
  const shown = await intrayJson(['hook', 'show', keyId], settings)
  assert.deepEqual([shown.url, shown.secret, shown.deliveries], [made.url, undefined, []])
  const listed = await intray(['hook', 'list'], env)
  assert.match(listed.stdout.toString(), new RegExp(`${keyId} +active +7/42 +telegram/1`))
  assert.ok(!(await intray(['token', 'list'], env)).stdout.toString().includes(keyId))
  assert.equal((await intrayJson(['hook', 'disable', keyId], env)).state, 'disabled')
  assert.equal((await intrayJson(['hook', 'enable', keyId], env)).state, 'active')
  const rotated = await intrayJson(['hook', 'rotate', keyId, '--overlap', '1h'], settings)
  assert.notEqual(rotated.secret, made.secret)
  assert.equal((rotated.secrets as object[]).length, 2)
  const moved = await intrayJson(['hook', 'rotate', keyId, '--address'], settings)
  assert.deepEqual([moved.rotated_from, (moved.secrets as object[]).length], [keyId, 2])
  assert.notEqual(moved.url, made.url)
  const again = await intray(['hook', 'rotate', keyId, '--address'], env)
  assert.deepEqual([again.code, again.stderr.includes(String(moved.key_id))], [1, true])
  const asToken = await intray(['token', 'rotate', String(moved.key_id)], env)
  assert.match(asToken.stderr, /is a hook\. Rotate it/)
  await withStore(env.INTRAY_DATABASE_URL, async ({ operators }) => {
    const actions = (await operators.listAudit(null, 20)).map(({ action }) => action)
    assert.deepEqual(actions, ['hook_rotate', 'hook_rotate', 'hook_enable', 'hook_disable', 'hook_create'])
  })
})

test('the secret of a vendor is read from a file, and no flag takes it', async () => {
  const env = await newEnv()
  const file = fileIn(env, 'secret', 'whsec_abc\n')
  const made = await intrayJson([...CREATE, '--recipe', 'stripe', '--secret-file', file], env)
  assert.deepEqual([made.secret, (made.secrets as object[]).length], [null, 1])
  const later = await intray([...CREATE, '--recipe', 'stripe'], env)
  const [, keyId = ''] = /hook rotate (\w{10}) --secret-stdin/.exec(later.stdout.toString()) ?? []
  const unmade = await intray(['hook', 'rotate', keyId], env)
  assert.equal(unmade.code, 1)
  assert.match(unmade.stderr, /The vendor makes the secret of hook .* --secret-stdin/)
  const missing = await intray([...CREATE, '--recipe', 'stripe', '--secret-file', `${file}-not`], env)
  assert.equal(missing.code, 1)
  const bad = await intray([...CREATE, '--recipe', 'stripe', '--secret-file', fileIn(env, 'bad', 'a b\n')], env)
  assert.match(bad.stderr, /fewer than 8 characters/)
  assert.ok(!bad.stderr.includes('a b'))
})

test('wrong calls are told what to do', async () => {
  const env = await newEnv()
  for (const [args, told] of [
    [[...CREATE], /Give --recipe NAME or --recipe-file FILE/],
    [[...CREATE, '--recipe', 'telegramm'], /Did you mean telegram\?/],
    [[...CREATE, '--recipe', 'elementor', '--secret-stdin'], /is empty|no secret/],
    [[...CREATE, '--recipe', 'telegram', '--max-body', '7'], /--max-body must be/],
    [['hook', 'rotate', 'AAAAAAAAAA', '--address', '--secret-stdin'], /--address keeps the secrets|is empty/],
    [['hook', 'create', '--recipe', 'telegram'], /--account N and --company N/],
  ] as const) {
    const { code, stderr } = await intray(args, env)
    assert.deepEqual([code, told.test(stderr)], [2, true], `${args.join(' ')}: ${stderr}`)
  }
  const unknown = await intray(['hook', 'show', 'AAAAAAAAAA'], env)
  assert.deepEqual([unknown.code, /There is no hook/.test(unknown.stderr)], [1, true])
})

test('a recipe file: checked with a sample, its mistakes all told at once, and used by a hook', async () => {
  const env = await newEnv()
  const recipe = fileIn(
    env,
    'shop.yaml',
    'title: Shop\nsignature: { kind: none }\nsource_ref: ["shop:{hook}:{header:x-no}"]\nindex: { text: ["{/note}"] }\n',
  )
  const sample = fileIn(env, 'order.json', '{"note":"blue"}')
  const check = ['hook', 'check', '--recipe', recipe, '--sample', sample]
  const seen = await intray([...check, '--header', 'X-No: 7'], {})
  assert.equal(seen.code, 0, seen.stderr)
  assert.match(seen.stdout.toString(), /source_ref: "shop:hook:7"\n.*text: "blue"/s)
  const made = await intrayJson([...CREATE, '--recipe-file', recipe], env)
  assert.match(String(made.recipe), /^custom\/[0-9a-f]{24}$/)
  const sent = await intrayJson(['hook', 'send-sample', String(made.key_id), '--body', sample], env)
  assert.equal((sent.read as { snippet: string }).snippet, 'blue')
  const wrong = fileIn(env, 'wrong.yaml', 'title: 7\nsignature: { kind: magic }\n')
  const told = await intray([...CREATE, '--recipe-file', wrong], env)
  assert.equal(told.code, 1)
  assert.match(told.stderr, /\/title: .*\n.*\/signature\/kind: /)
  assert.equal(
    (await intray(['hook', 'check', '--recipe', recipe, '--sample', fileIn(env, 'x', 'no json')], {})).code,
    1,
  )
})

test('doctor and backup: the key of secrets is needed, and named when it is missing or another one', async () => {
  const env = await newEnv()
  const secretsCheck = async (more: Record<string, string> = {}) => {
    const { stdout } = await intray(['doctor', '--json'], { ...env, ...more })
    const { checks } = JSON.parse(stdout.toString()) as { checks: { name: string; verdict: string; summary: string }[] }
    return checks.find(({ name }) => name === 'secrets')!
  }
  assert.equal((await secretsCheck()).verdict, 'ok')
  const before = await intray(['backup', join(folderOf(env), 'none.bak')], env)
  assert.doesNotMatch(before.stderr, /secrets/)
  const made = await intrayJson([...CREATE, '--recipe', 'github'], env)
  assert.match(
    (await secretsCheck()).summary,
    /sealed secrets of 1 hooks and endpoints open with .*intray\.secrets\.key/,
  )
  const backup = await intray(['backup', join(folderOf(env), 'some.bak')], env)
  assert.match(backup.stderr, /their key is not in it\. Keep a copy of it apart/)
  const other = await secretsCheck({ INTRAY_SECRETS_KEY: Buffer.alloc(32, 1).toString('base64') })
  assert.deepEqual([other.verdict, other.summary.includes(String(made.key_id))], ['wrong', true])
  rmSync(keyFileOf(env))
  assert.equal((await secretsCheck()).verdict, 'wrong')
  const shown = await intrayJson(['hook', 'show', String(made.key_id)], env)
  assert.equal(shown.url, null)
  const refused = await intray([...CREATE, '--recipe', 'telegram'], env)
  assert.deepEqual([refused.code, /key of secrets is missing/.test(refused.stderr)], [1, true])
})

test('on PostgreSQL the key is a setting', async () => {
  const env = { INTRAY_DATABASE_URL: await newPostgresDatabase() }
  await withStore(env.INTRAY_DATABASE_URL, async () => {})
  const refused = await intray([...CREATE, '--recipe', 'telegram'], env)
  assert.deepEqual([refused.code, /INTRAY_SECRETS_KEY is not set/.test(refused.stderr)], [1, true])
  const settings = { ...env, INTRAY_SECRETS_KEY: Buffer.alloc(32, 1).toString('hex') }
  assert.match(String((await intrayJson([...CREATE, '--recipe', 'telegram'], settings)).url), /ith_/)
})

test('a lost key of secrets is not replaced while an endpoint is sealed with it', async () => {
  const env = await newEnv()
  await withStore(env.INTRAY_DATABASE_URL, (store) => createToken(store))
  const of = ['--subscription', 'default', '--account', '7', '--company', '42']
  await intrayJson(['endpoint', 'set', '--url', 'https://example.com/', ...of], env)
  rmSync(keyFileOf(env))
  const made = await intray([...CREATE, '--recipe', 'telegram'], env)
  assert.notEqual(made.code, 0, 'a hook was sealed with a new key')
  assert.match(made.stderr, /key of secrets is missing/)
  assert.equal(existsSync(keyFileOf(env)), false)
})

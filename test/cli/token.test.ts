// `./intray token` without a server: what it makes, prints and refuses.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tokenKeyId } from '../../src/auth/token.ts'
import { intrayJson, newDatabaseEnv } from '../support/command.ts'
import { drivers } from '../support/drivers.ts'
import { withStore } from '../support/journal.ts'
import { intray } from '../support/process.ts'

const newEnv = () => newDatabaseEnv('cli-token')

const SHOWN = [
  'key_id',
  'account_id',
  'company_id',
  'scope',
  'is_active',
  'expires_at',
  'label',
  'created_at',
  'disabled_at',
  'last_used_at',
  'rotated_from',
  'rate_limit',
  'moved_to',
]
const ISO = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/

const ms = (value: unknown) => Date.parse(String(value))

test('create, show, list, disable, enable and rotate print the same JSON object, and only create and rotate the token', async () => {
  const env = await newEnv()
  const create = ['token', 'create', '--account', '7', '--company', '42', '--scope', 'cf', '--label', 'contact form']
  const { token, ...made } = await intrayJson(create, env)
  assert.deepEqual(Object.keys(made), SHOWN)
  assert.match(String(made.created_at), ISO)
  assert.deepEqual(made, {
    key_id: tokenKeyId(String(token)),
    account_id: 7,
    company_id: 42,
    scope: 'cf',
    is_active: 1,
    expires_at: null,
    label: 'contact form',
    created_at: made.created_at,
    disabled_at: null,
    last_used_at: null,
    rotated_from: null,
    rate_limit: null,
    moved_to: null,
  })
  const keyId = String(made.key_id)
  assert.deepEqual(await intrayJson(['token', 'show', keyId], env), made)
  assert.deepEqual(await intrayJson(['token', 'list'], env), made, 'one token is one line')

  const disabled = await intrayJson(['token', 'disable', keyId], env)
  assert.match(String(disabled.disabled_at), ISO)
  assert.deepEqual(disabled, { ...made, is_active: 0, disabled_at: disabled.disabled_at })
  assert.deepEqual(await intrayJson(['token', 'enable', keyId], env), made)

  const { token: nextToken, ...next } = await intrayJson(['token', 'rotate', keyId], env)
  assert.notEqual(nextToken, token)
  assert.deepEqual(next, {
    ...made,
    key_id: tokenKeyId(String(nextToken)),
    created_at: next.created_at,
    rotated_from: keyId,
  })
  const retired = await intrayJson(['token', 'show', keyId], env)
  assert.deepEqual([retired.is_active, retired.expires_at], [0, null], 'the old one stays on record, disabled')

  const list = await intray(['token', 'list', '--json'], env)
  const lines = list.stdout.toString().trimEnd().split('\n')
  assert.deepEqual(
    lines.map((line) => JSON.parse(line) as unknown),
    [retired, next],
    'one object a line, in the order of creation',
  )
})

test('text output shows the token once, when it is made', async () => {
  const env = await newEnv()
  await intrayJson(['operator', 'add', 'ada'], env)
  const empty = await intray(['token', 'list'], env)
  assert.equal(empty.code, 0)
  assert.match(empty.stdout.toString(), /^No tokens yet\./)

  const made = await intray(['token', 'create', '--account', '7', '--company', '42'], env)
  assert.deepEqual([made.code, made.stderr], [0, ''])
  const [token] = /itr_\w{47}/.exec(made.stdout.toString())!
  const keyId = tokenKeyId(token)!
  assert.match(made.stdout.toString(), /shown this once/)
  for (const args of [['show', keyId], ['list'], ['disable', keyId]]) {
    const { code, stdout } = await intray(['token', ...args], env)
    assert.equal(code, 0)
    assert.ok(stdout.includes(keyId))
    assert.doesNotMatch(stdout.toString(), /itr_/)
  }
  const shown = (await intray(['token', 'show', keyId], env)).stdout.toString()
  assert.match(shown, /^state +disabled$/m)
  assert.match(shown, /^scope +$/m, 'a token without scope has an empty one')
})

test('what is stored of a token is its key id and the SHA-256 of the whole, never the secret', async () => {
  const env = await newEnv()
  const { token, key_id: keyId } = await intrayJson(['token', 'create', '--account', '1', '--company', '1'], env)
  const stored = await withStore(env.INTRAY_DATABASE_URL, (store) => store.tokens.find(String(keyId)))
  const digest = await crypto.subtle.digest('SHA-256', Buffer.from(String(token)))
  assert.deepEqual(Buffer.from(stored!.hash), Buffer.from(digest))
})

test('--expires takes 2s to 365d from now, or an ISO time, a past one too', async () => {
  const env = await newEnv()
  const create = (expires: string) =>
    intrayJson(['token', 'create', '--account', '1', '--company', '1', '--expires', expires], env)
  for (const [expires, after] of [
    ['2s', 2000],
    ['90m', 90 * 60_000],
    ['365d', 365 * 86_400_000],
  ] as const) {
    const made = await create(expires)
    assert.equal(ms(made.expires_at) - ms(made.created_at), after, expires)
  }
  for (const [expires, iso] of [
    ['2099-01-31T00:00:00Z', '2099-01-31T00:00:00.000Z'],
    ['2099-01-31T01:30:00.250+01:30', '2099-01-31T00:00:00.250Z'],
    ['2001-01-31T00:00:00Z', '2001-01-31T00:00:00.000Z'],
  ] as const) {
    assert.equal((await create(expires)).expires_at, iso)
  }
  const list = await intray(['token', 'list'], env)
  assert.match(list.stdout.toString(), / expired +.* 2001-01-31T00:00:00\.000Z/)
})

const CREATE = ['create', '--account', '1', '--company', '1']
const REFUSED: Record<string, [args: readonly string[], sentence: RegExp]> = {
  'no sub-command': [[], /token needs a sub-command/],
  'an unknown sub-command': [['destroy', 'x'], /There is no command "token destroy"\.$/m],
  'create without an account': [['create', '--company', '1'], /Give --account N and --company N/],
  'create without a company': [['create', '--account', '1'], /Give --account N and --company N/],
  'account 0': [['create', '--account', '0', '--company', '1'], /--account must be a whole number from 1/],
  'a broken account': [['create', '--account', '1.5', '--company', '1'], /--account must be a whole number from 1/],
  'an account too large to be exact': [
    ['create', '--account', '9007199254740993', '--company', '1'],
    /--account must be a whole number/,
  ],
  'a scope in capitals': [[...CREATE, '--scope', 'CF'], /--scope takes 1 to 64 of a-z/],
  'a scope of 65 characters': [[...CREATE, '--scope', 'a'.repeat(65)], /--scope takes 1 to 64/],
  'a label of 201 characters': [[...CREATE, '--label', 'x'.repeat(201)], /--label takes at most 200/],
  'expiry after 1s': [[...CREATE, '--expires', '1s'], /--expires takes 2s to 365d/],
  'expiry after 366d': [[...CREATE, '--expires', '366d'], /--expires takes 2s to 365d/],
  'expiry after rubbish': [[...CREATE, '--expires', 'soon'], /--expires takes 2s to 365d, or an ISO time/],
  'expiry without a unit': [[...CREATE, '--expires', '30'], /--expires takes/],
  'expiry at a time without its zone': [[...CREATE, '--expires', '2099-01-31T00:00:00'], /--expires takes/],
  'expiry in a 13th month': [[...CREATE, '--expires', '2099-13-01T00:00:00Z'], /--expires/],
  'expiry on a day that month does not have': [[...CREATE, '--expires', '2099-02-30T00:00:00Z'], /--expires/],
  'expiry of nothing, as from an unset variable': [[...CREATE, '--expires', ''], /--expires/],
  'an option that does not exist': [[...CREATE, '--expiry', '2s'], /--expiry/],
  'an option without its value': [['create', '--account'], /--account/],
  'a rate without its time': [[...CREATE, '--rate-limit', '100'], /--rate-limit must be off or a rate such as 100\/1s/],
  'a rate of none': [[...CREATE, '--rate-limit', '0/1s'], /--rate-limit must be/],
  'limit without a rate': [['limit', 'a'], /token limit needs --rate-limit/],
  'show without a key id': [['show'], /KEY_ID is missing/],
  'disable with two key ids': [['disable', 'a', 'b'], /Unexpected argument "b"/],
  'list with a key id': [['list', 'a'], /Unexpected argument "a"/],
  'an overlap of 1s': [['rotate', 'a', '--overlap', '1s'], /--overlap takes 2s to 365d/],
}

test('a rate of its own is set when a token is made, changed, shown, and kept by its successor', async () => {
  const env = await newEnv()
  const made = await intrayJson(['token', ...CREATE, '--rate-limit', '100/1s'], env)
  assert.equal(made.rate_limit, '100/1s')
  const keyId = String(made.key_id)
  const limit = async (rate: string) =>
    (await intrayJson(['token', 'limit', keyId, '--rate-limit', rate], env)).rate_limit
  assert.equal(await limit('off'), 'off')
  assert.equal(await limit('default'), null)
  assert.equal(await limit('90000/60m'), '90000/1h')
  assert.equal((await intrayJson(['token', 'rotate', keyId], env)).rate_limit, '90000/1h')
  const { stdout } = await intray(['token', 'list'], env)
  assert.match(stdout.toString(), /RATE LIMIT.*\n.* 90000\/1h /)
})

test('bad input is refused with a sentence and code 2, and makes nothing', async (t) => {
  const env = await newEnv()
  const { key_id: keyId } = await intrayJson(['token', 'create', '--account', '1', '--company', '1'], env)
  for (const [name, [args, sentence]] of Object.entries(REFUSED)) {
    await t.test(name, async () => {
      const known = args[0] === 'rotate' ? args.map((arg) => (arg === 'a' ? String(keyId) : arg)) : args
      const { code, stdout, stderr } = await intray(['token', ...known], env)
      assert.equal(code, 2, stdout.toString() + stderr)
      assert.match(stderr, sentence)
      assert.match(stderr, /^intray: /)
      assert.doesNotMatch(stderr, /^ {4}at /m)
      assert.equal(stdout.toString(), '')
    })
  }
  const tokens = await withStore(env.INTRAY_DATABASE_URL, (store) => store.tokens.list())
  assert.equal(tokens.length, 1)
})

test('an unknown key id is told with code 1', async () => {
  const env = await newEnv()
  await intrayJson(['token', 'create', '--account', '1', '--company', '1'], env)
  for (const action of ['show', 'disable', 'enable', 'rotate', 'limit']) {
    const { code, stdout, stderr } = await intray(
      ['token', action, 'nosuchkey1', ...(action === 'limit' ? ['--rate-limit', 'off'] : [])],
      env,
    )
    assert.equal(code, 1)
    assert.match(stderr, /^intray: There is no token with key id nosuchkey1\. .*token list/)
    assert.equal(stdout.toString(), '')
  }
})

test('control characters in a label do not reach the terminal', async () => {
  const env = await newEnv()
  const label = 'red \u001b[31m, back \u202e, next\nline'
  const made = await intrayJson([...'token create --account 1 --company 1 --label'.split(' '), label], env)
  assert.equal(made.label, label, 'kept as given')
  for (const args of [['show', String(made.key_id)], ['list']]) {
    const { stdout } = await intray(['token', ...args], env)
    assert.doesNotMatch(stdout.toString(), /[\u001b\u202e]|^line/m, `token ${args[0]}`)
  }
})

test('rotating an expired token asks for a new expiry, and takes it', async () => {
  const env = await newEnv()
  const made = await intrayJson(
    ['token', 'create', '--account', '1', '--company', '1', '--expires', '2001-01-31T00:00:00Z'],
    env,
  )
  const refused = await intray(['token', 'rotate', String(made.key_id)], env)
  assert.equal(refused.code, 1)
  assert.match(refused.stderr, /has expired.*--expires 30d/)
  const next = await intrayJson(['token', 'rotate', String(made.key_id), '--expires', '30d'], env)
  assert.equal(ms(next.expires_at) - ms(next.created_at), 30 * 86_400_000)
})

for (const driver of drivers) {
  test(`every change of a token is in the audit log with its tenant, on ${driver.name}`, async () => {
    const url = await driver.newDatabase()
    await withStore(url, async () => {})
    const run = (...args: string[]) => intrayJson(['token', ...args], { INTRAY_DATABASE_URL: url })
    const keyId = String((await run('create', '--account', '7', '--company', '42')).key_id)
    for (const args of [['disable'], ['enable'], ['limit', '--rate-limit', '5/1s'], ['rotate']]) {
      await run(args[0]!, keyId, ...args.slice(1))
    }
    assert.equal((await intray(['token', 'disable', 'nosuchkey1'], { INTRAY_DATABASE_URL: url })).code, 1)
    await run('show', keyId)
    const entries = await withStore(url, (store) => store.operators.listAudit(null, 10))
    assert.deepEqual(
      entries.map(({ action, operator, tenant, target, address }) => ({ action, operator, tenant, target, address })),
      ['token_rotate', 'token_limit', 'token_enable', 'token_disable', 'token_create'].map((action) => ({
        action,
        operator: '(command line)',
        tenant: { accountId: 7, companyId: 42 },
        target: keyId,
        address: null,
      })),
    )
  })
}

test('list shows the tokens that match all flags', async () => {
  const env = await newEnv()
  const create = async (account: string, company: string, ...more: string[]) =>
    String((await intrayJson(['token', 'create', '--account', account, '--company', company, ...more], env)).key_id)
  const form = await create('1', '1', '--scope', 'cf')
  const bot = await create('2', '1', '--scope', 'bot', '--expires', '2001-01-31T00:00:00Z')
  const other = await create('1', '2', '--scope', 'cf')
  await intrayJson(['token', 'disable', other], env)
  const list = async (...flags: string[]) => {
    const { code, stdout, stderr } = await intray(['token', 'list', '--json', ...flags], env)
    assert.equal(code, 0, stderr)
    return Array.from(stdout.toString().matchAll(/"key_id":"(\w+)"/g), ([, keyId]) => keyId)
  }
  assert.deepEqual(await list(), [form, bot, other])
  assert.deepEqual(await list('--account', '1'), [form, other])
  assert.deepEqual(await list('--company', '1', '--scope', 'cf'), [form])
  assert.deepEqual(await list('--active'), [form])
  assert.deepEqual(await list('--inactive'), [other])
  assert.deepEqual(await list('--expired'), [bot])
  assert.deepEqual(await list('--unused-since', '1d'), [], 'made today')
  assert.deepEqual(await list('--unused-since', '2999-01-01T00:00:00Z', '--company', '2'), [other])
  const none = await intray(['token', 'list', '--account', '9'], env)
  assert.equal(none.stdout.toString(), 'No token matches.\n')
  for (const [flags, says] of [
    [['--active', '--expired'], /Give one of --active, --inactive, --expired\./],
    [['--account', 'x'], /--account must be a whole number/],
    [['--unused-since', 'monday'], /--unused-since must be a time such as .*, or a duration such as 30d\./],
  ] as const) {
    const { code, stderr } = await intray(['token', 'list', ...flags], env)
    assert.equal(code, 2)
    assert.match(stderr, says)
  }
})

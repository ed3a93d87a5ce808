import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { describe, type TestContext, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Authentication, MAX_LOOK_AGE_MS, MAX_LOOK_WAIT_MS, Principals } from '../../../src/auth/principals.ts'
import { mintToken } from '../../../src/auth/token.ts'
import { IMPORTED_PREFIX, importedKeyId } from '../../../src/model/imported-token.ts'
import type { TokenRecord } from '../../../src/model/token.ts'
import type { NodeState } from '../../../src/store/contract/nodes.ts'
import type { TokenStore, TokenUse } from '../../../src/store/contract/tokens.ts'
import { TestClock } from '../../support/clock.ts'
import type { RateLimit } from '../../../src/model/rate-limit.ts'
import { until } from '../../support/until.ts'

const IMPORT_KEY = Buffer.from('key')

/** Tokens in memory, whose answers can be held back. */
class FakeTokens {
  readonly records = new Map<string, TokenRecord & { generation: number }>()
  readonly uses: TokenUse[] = []
  finds = 0
  current = 0
  /** Runs between the moment `find` has read and the moment it answers. */
  beforeAnswer: () => Promise<void> | void = () => {}
  /** The same for `generation`. */
  beforeGeneration: () => Promise<void> | void = () => {}

  put(record: TokenRecord): void {
    this.current += 1
    this.records.set(record.keyId, { ...record, generation: this.current })
  }

  readonly store = {
    find: async (keyId: string) => {
      this.finds += 1
      const found = this.records.get(keyId) ?? null
      await this.beforeAnswer()
      return found
    },
    importKey: async () => IMPORT_KEY,
    hasImported: async () => [...this.records.keys()].some((keyId) => keyId.startsWith(IMPORTED_PREFIX)),
    generation: async () => {
      const read = this.current
      await this.beforeGeneration()
      return read
    },
    changedSince: async (generation: number) => [...this.records.values()].filter((one) => one.generation > generation),
    touch: async (uses: readonly TokenUse[]) => {
      this.uses.push(...uses)
    },
  } as unknown as TokenStore
}

interface Fixture {
  readonly tokens: FakeTokens
  readonly clock: TestClock
  readonly principals: Principals
  readonly reported: NodeState[]
  readonly troubles: string[]
}

async function setUp(t: TestContext, rateLimit: RateLimit | null = null): Promise<Fixture> {
  const tokens = new FakeTokens()
  const clock = new TestClock()
  const reported: NodeState[] = []
  const troubles: string[] = []
  const principals = new Principals({
    tokens: tokens.store,
    nodes: { report: async (state) => void reported.push(state), remove: async () => {}, live: async () => reported },
    nodeId: 'node',
    clock,
    rateLimit,
    onTrouble: (doing) => troubles.push(doing),
  })
  await principals.start()
  t.after(() => principals.stop())
  return { tokens, clock, principals, reported, troubles }
}

function record(minted: ReturnType<typeof mintToken>, more: Partial<TokenRecord> = {}): TokenRecord {
  return {
    keyId: minted.keyId,
    hash: minted.hash,
    accountId: 7,
    companyId: 42,
    scope: 'cf',
    label: '',
    isActive: true,
    movedTo: null,
    recipe: null,
    expiresAt: null,
    createdAt: 0,
    disabledAt: null,
    lastUsedAt: null,
    rotatedFrom: null,
    rateLimit: null,
    ...more,
  }
}

async function codeOf(answer: Authentication | Promise<Authentication>): Promise<string> {
  const found = await answer
  return 'problem' in found ? found.problem.code : `principal ${found.principal.keyId}`
}

describe('principals', () => {
  test('a known token is its principal', async (t) => {
    const { principals, tokens } = await setUp(t)
    const minted = mintToken()
    tokens.put(record(minted))
    assert.deepEqual(await principals.authenticate({ token: minted.token }), {
      principal: { keyId: minted.keyId, accountId: 7, companyId: 42, scope: 'cf' },
      bucket: null,
      recipe: null,
    })
  })

  test('a token has the bucket of the setting, one of its own, or none; another change of it is no new start', async (t) => {
    const { principals, tokens, reported, clock } = await setUp(t, { requests: 3, windowMs: 1000 })
    const [plain, own, free] = [mintToken(), mintToken(), mintToken()]
    tokens.put(record(plain))
    tokens.put(record(own, { rateLimit: { requests: 9, windowMs: 1000 } }))
    tokens.put(record(free, { rateLimit: 'off' }))
    const bucket = async (minted: typeof plain) => {
      const found = await principals.authenticate({ token: minted.token })
      return 'bucket' in found ? found.bucket : undefined
    }
    assert.equal((await bucket(plain))?.limit.requests, 3)
    assert.equal((await bucket(own))?.limit.requests, 9)
    assert.equal(await bucket(free), null)
    ;(await bucket(plain))?.take(clock.now())
    const inEffect = () => until('the change is reported', () => reported.at(-1)?.tokenGeneration === tokens.current)
    tokens.put(record(plain, { label: 'renamed' }))
    await inEffect()
    assert.equal((await bucket(plain))?.peek(clock.now()).remaining, 2)
    tokens.put(record(plain, { rateLimit: { requests: 5, windowMs: 1000 } }))
    await inEffect()
    assert.equal((await bucket(plain))?.peek(clock.now()).remaining, 5)
  })

  test('a token is looked up once, then answered from memory and at once', async (t) => {
    const { principals, tokens } = await setUp(t)
    const minted = mintToken()
    const shown = { token: minted.token }
    tokens.put(record(minted))
    await principals.authenticate(shown)
    assert.ok(!(principals.authenticate(shown) instanceof Promise))
    assert.equal(tokens.finds, 1)
  })

  test('a new token works at once, even if it was unknown a moment ago', async (t) => {
    const { principals, tokens } = await setUp(t)
    const minted = mintToken()
    const shown = { token: minted.token }
    assert.equal(await codeOf(principals.authenticate(shown)), 'invalid_token')
    tokens.put(record(minted))
    assert.equal(await codeOf(principals.authenticate(shown)), `principal ${minted.keyId}`)
  })

  test('a malformed token is refused without a look-up', async (t) => {
    const { principals, tokens } = await setUp(t)
    assert.equal(await codeOf(principals.authenticate({ token: 'nonsense' })), 'invalid_token')
    assert.equal(tokens.finds, 0)
  })

  test('a token of another system is looked up once any was imported, and then answered from memory', async (t) => {
    const { principals, tokens, reported } = await setUp(t)
    const token = 'an-older-token'
    const digest = hash('sha256', token, 'buffer')
    const keyId = importedKeyId(IMPORT_KEY, digest)
    const imported = record({ keyId, token, hash: digest })
    tokens.put(imported)
    await until('the import is known', () => reported.at(-1)?.tokenGeneration === tokens.current)
    for (const shown of [{ token }, { token }])
      assert.equal(await codeOf(principals.authenticate(shown)), `principal ${keyId}`)
    assert.equal(tokens.finds, 1)
    for (const other of ['an-older-tokem', keyId, digest.toString('hex')]) {
      assert.equal(await codeOf(principals.authenticate({ token: other })), 'invalid_token')
    }
    assert.equal(tokens.finds, 4, 'one look-up each')
    assert.equal(await codeOf(principals.authenticate({ token: 'itr_nonsense' })), 'invalid_token')
    assert.equal(tokens.finds, 4, 'ours by its beginning, and malformed')
    tokens.put({ ...imported, isActive: false })
    await until('it is disabled', async () => (await codeOf(principals.authenticate({ token }))) === 'token_disabled')
  })

  test('the secret of another token does not open this one', async (t) => {
    const { principals, tokens } = await setUp(t)
    const [mine, other] = [mintToken(), mintToken()]
    tokens.put(record({ ...mine, hash: other.hash }))
    assert.equal(await codeOf(principals.authenticate({ token: mine.token })), 'invalid_token')
  })

  test('each token is judged by itself, whoever was let in before', async (t) => {
    const { principals, tokens } = await setUp(t)
    const [mine, other, forged] = [mintToken(), mintToken(), mintToken()]
    tokens.put(record(mine))
    tokens.put(record(other))
    tokens.put(record({ ...forged, hash: mine.hash }))
    const shown = [mine, mine, other, mine, forged, mine, other, other].map(({ token }) => ({ token }))
    const [me, they] = [`principal ${mine.keyId}`, `principal ${other.keyId}`]
    const expected = [me, me, they, me, 'invalid_token', me, they, they]
    // The second time each is shown again as it was.
    for (const again of [shown, shown]) {
      const codes = []
      for (const one of again) codes.push(await codeOf(principals.authenticate(one)))
      assert.deepEqual(codes, expected)
    }
    const almost = `${mine.token.slice(0, -1)}${mine.token.endsWith('a') ? 'b' : 'a'}`
    // Its low bytes are those of the token.
    const wide = (at: number) =>
      `${mine.token.slice(0, at)}${String.fromCharCode(0x100 + mine.token.charCodeAt(at))}${mine.token.slice(at + 1)}`
    for (const token of [almost, mine.token.slice(0, -1), `${mine.token}a`, '', wide(0), wide(20)]) {
      assert.equal(await codeOf(principals.authenticate({ token })), 'invalid_token')
    }
  })

  test('a token that was given another secret is not opened by the one it was let in with', async (t) => {
    const { principals, tokens, reported } = await setUp(t)
    const minted = mintToken()
    const shown = { token: minted.token }
    tokens.put(record(minted))
    await principals.authenticate(shown)
    tokens.put(record({ ...minted, hash: mintToken().hash }))
    await until('the change is reported', () => reported.at(-1)?.tokenGeneration === tokens.current)
    assert.equal(await codeOf(principals.authenticate(shown)), 'invalid_token')
  })

  test('disabled and expired are told apart, and disabled wins', async (t) => {
    const { principals, tokens, clock } = await setUp(t)
    const past = clock.now() - 1
    for (const [more, code] of [
      [{ isActive: false }, 'token_disabled'],
      [{ expiresAt: past }, 'token_expired'],
      [{ isActive: false, expiresAt: past }, 'token_disabled'],
    ] as const) {
      const minted = mintToken()
      tokens.put(record(minted, more))
      assert.equal(await codeOf(principals.authenticate({ token: minted.token })), code)
    }
  })

  test('a token in memory expires when its time has come', async (t) => {
    const { principals, tokens, clock } = await setUp(t)
    const minted = mintToken()
    const shown = { token: minted.token }
    tokens.put(record(minted, { expiresAt: clock.now() + 10 }))
    assert.match(await codeOf(principals.authenticate(shown)), /^principal/)
    clock.advance(10)
    assert.equal(await codeOf(principals.authenticate(shown)), 'token_expired')
  })

  test('a change reaches tokens in memory, and is then reported as in force', async (t) => {
    const { principals, tokens, reported } = await setUp(t)
    const minted = mintToken()
    const shown = { token: minted.token }
    tokens.put(record(minted))
    await principals.authenticate(shown)
    tokens.put(record(minted, { isActive: false }))
    await until('the change is reported', () => reported.at(-1)?.tokenGeneration === tokens.current)
    assert.equal(await codeOf(principals.authenticate(shown)), 'token_disabled')
    assert.equal(tokens.finds, 1, 'without another look-up')
  })

  test('a node that stood still looks for changes before it lets anybody in', async (t) => {
    const { principals, tokens, clock } = await setUp(t)
    const minted = mintToken()
    const shown = { token: minted.token }
    tokens.put(record(minted))
    await principals.authenticate(shown)
    tokens.put(record(minted, { isActive: false }))
    clock.advance(MAX_LOOK_AGE_MS)
    assert.match(await codeOf(principals.authenticate(shown)), /^principal/, 'the control: not longer than it may')
    clock.advance(1)
    assert.deepEqual(await principals.revocation(minted.keyId), { code: 'token_disabled' })
    assert.equal(await codeOf(principals.authenticate(shown)), 'token_disabled')
  })

  test('a look that began before the node stood still is not taken for one after it', async (t) => {
    const { principals, tokens, clock } = await setUp(t)
    const minted = mintToken()
    const shown = { token: minted.token }
    tokens.put(record(minted))
    await principals.authenticate(shown)
    const gate = Promise.withResolvers<void>()
    let looks = 0
    tokens.beforeGeneration = () => (++looks === 1 ? gate.promise : undefined)
    await until('it looks for changes', () => looks === 1)
    tokens.put(record(minted, { isActive: false }))
    clock.advance(MAX_LOOK_AGE_MS + 1)
    const answer = principals.authenticate(shown)
    gate.resolve()
    assert.equal(await codeOf(answer), 'token_disabled')
    assert.equal(looks, 2)
  })

  test('a look that is not answered keeps nobody waiting for long', async (t) => {
    const { principals, tokens, clock } = await setUp(t)
    const minted = mintToken()
    const shown = { token: minted.token }
    tokens.put(record(minted))
    await principals.authenticate(shown)
    const gate = Promise.withResolvers<void>()
    tokens.beforeGeneration = () => gate.promise
    clock.advance(MAX_LOOK_AGE_MS + 1)
    t.mock.timers.enable({ apis: ['setTimeout'] })
    let isOver = false
    const answer = codeOf(principals.authenticate(shown)).finally(() => (isOver = true))
    for (let passed = 0; passed < MAX_LOOK_WAIT_MS; passed += 10) {
      assert.equal(isOver, false)
      t.mock.timers.tick(10)
      await nextTurn()
    }
    assert.match(await answer, /^principal/)
    gate.resolve()
  })

  test('a look-up that was overtaken by a change does not bring the old state back', async (t) => {
    const { principals, tokens, reported } = await setUp(t)
    const minted = mintToken()
    const shown = { token: minted.token }
    tokens.put(record(minted))
    const gate = Promise.withResolvers<void>()
    // The look-up has read the active token; before it answers, the token is disabled and that is reported as in force.
    tokens.beforeAnswer = () => gate.promise
    const answer = principals.authenticate(shown)
    tokens.put(record(minted, { isActive: false }))
    await until('the change is reported', () => reported.at(-1)?.tokenGeneration === tokens.current)
    tokens.beforeAnswer = () => {}
    gate.resolve()
    assert.equal(await codeOf(answer), 'token_disabled')
    assert.equal(await codeOf(principals.authenticate(shown)), 'token_disabled')
  })

  test('a look-up that fails is our trouble, not the token’s', async (t) => {
    const { principals, tokens, troubles } = await setUp(t)
    const minted = mintToken()
    tokens.put(record(minted))
    tokens.beforeAnswer = () => Promise.reject(new Error('no database'))
    assert.equal(await codeOf(principals.authenticate({ token: minted.token })), 'storage_unavailable')
    assert.equal(troubles.length, 1)
    tokens.beforeAnswer = () => {}
    assert.match(await codeOf(principals.authenticate({ token: minted.token })), /^principal/)
  })

  test('uses are written in the background, the latest of each, and only of tokens that were let in', async (t) => {
    const { principals, tokens, clock } = await setUp(t)
    const [used, disabled] = [mintToken(), mintToken()]
    tokens.put(record(used))
    tokens.put(record(disabled, { isActive: false }))
    await principals.authenticate({ token: used.token })
    await principals.authenticate({ token: disabled.token })
    clock.advance(5)
    await principals.authenticate({ token: used.token })
    assert.deepEqual(tokens.uses, [], 'not on the way of a request')
    await principals.stop()
    assert.deepEqual(tokens.uses, [{ keyId: used.keyId, usedAt: clock.now() }])
  })

  test('stopping twice is fine', async (t) => {
    const { principals } = await setUp(t)
    await principals.stop()
    await principals.stop()
  })
})

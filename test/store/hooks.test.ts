// Conformance: hooks. Every promise of src/store/contract/hooks.ts.

import assert from 'node:assert/strict'
import type { NewHook } from '../../src/store/contract/hooks.ts'
import { append, everyDriver, everyStore, failure, indexAll } from './suite.ts'
import { idOf, item, NOON, newToken, refusal, TENANT } from './rows.ts'

const OTHER = { accountId: 8, companyId: 42 } as const
const SEALED = Buffer.from([1, 0, 255, 7])

function newHook(fields: Parameters<typeof newToken>[0] = {}, recipe: NewHook['recipe'] = null): NewHook {
  const token = newToken({ recipe: 'telegram/1', ...fields })
  const { keyId, accountId, companyId } = token
  return { token, hook: { keyId, firstKeyId: keyId, accountId, companyId, maxBody: null, sealed: SEALED }, recipe }
}

const plain = <T extends { sealed: Uint8Array }>(hook: T) => ({ ...hook, sealed: Buffer.from(hook.sealed) })

everyStore('a hook comes back as it was made, and its token has its recipe', async (store) => {
  const made = newHook()
  const limited = { ...newHook(), hook: { ...newHook().hook, maxBody: 2048 } }
  await store.hooks.create(made)
  const withLimit = { ...limited, hook: { ...limited.hook, keyId: limited.token.keyId } }
  await store.hooks.create(withLimit)
  assert.deepEqual(plain((await store.hooks.find(made.token.keyId))!), made.hook)
  assert.equal((await store.hooks.find(withLimit.token.keyId))?.maxBody, 2048)
  assert.equal((await store.tokens.find(made.token.keyId))?.recipe, 'telegram/1')
  assert.equal(await store.hooks.find('unknown'), null)
  const listed = await store.hooks.list('', 10)
  assert.deepEqual(
    listed.map(({ keyId }) => keyId),
    [made.token.keyId, withLimit.token.keyId].toSorted(),
  )
  assert.equal((await store.hooks.list(listed[0]!.keyId, 10)).length, 1)
})

everyStore('hooks and tokens are listed apart', async (store) => {
  const hook = newHook()
  const token = newToken()
  await store.hooks.create(hook)
  await store.tokens.create(token)
  const keyIds = (found: readonly { keyId: string }[]) => found.map(({ keyId }) => keyId)
  assert.deepEqual(keyIds(await store.tokens.list()), [token.keyId])
  assert.deepEqual(keyIds(await store.tokens.list({ filter: { kind: 'hook' } })), [hook.token.keyId])
  assert.deepEqual(keyIds(await store.tokens.listOf(TENANT, null, 10)), [token.keyId])
  assert.deepEqual(keyIds(await store.tokens.listOf(TENANT, null, 10, 'hook')), [hook.token.keyId])
  assert.deepEqual(await store.tokens.listOf(OTHER, null, 10, 'hook'), [])
  assert.deepEqual(await store.tokens.tenants(null, 10), [TENANT])
})

everyStore('a key id that exists is rejected, and nothing of the hook is stored', async (store) => {
  const { keyId } = newToken()
  await store.tokens.create(newToken({ keyId }))
  await assert.rejects(store.hooks.create(newHook({ keyId })), failure('rejected'))
  assert.equal(await store.hooks.find(keyId), null)
})

everyStore('what is sealed is replaced once by one of two at once, and draws a generation', async (store) => {
  const made = newHook()
  await store.hooks.create(made)
  const { keyId } = made.token
  const before = await store.tokens.generation()
  assert.equal((await store.hooks.reseal(keyId, SEALED, Buffer.from('new')))?.keyId, keyId)
  assert.deepEqual(
    (await store.tokens.changedSince(before)).map((one) => one.keyId),
    [keyId],
  )
  const generation = await store.tokens.generation()
  assert.equal(await store.hooks.reseal(keyId, SEALED, Buffer.from('late')), null)
  assert.equal(await store.hooks.reseal('unknown', SEALED, Buffer.from('x')), null)
  assert.equal(await store.tokens.generation(), generation)
  assert.equal(Buffer.from((await store.hooks.find(keyId))!.sealed).toString(), 'new')
})

everyStore('a rotation makes the successor and retires the old hook together', async (store) => {
  const made = newHook()
  await store.hooks.create(made)
  const successor = newHook({ rotatedFrom: made.token.keyId })
  const next = { ...successor, hook: { ...successor.hook, firstKeyId: made.token.keyId } }
  const old = await store.hooks.rotate(next, NOON + 5000, NOON)
  assert.equal(old?.expiresAt, NOON + 5000)
  assert.equal((await store.hooks.find(next.token.keyId))?.firstKeyId, made.token.keyId)
  const again = newHook({ rotatedFrom: made.token.keyId })
  await assert.rejects(store.hooks.rotate(again, null, NOON), failure('rejected'))
  assert.equal(await store.hooks.find(again.token.keyId), null)
  assert.equal(await store.hooks.rotate(newHook({ rotatedFrom: 'unknown' }), null, NOON), null)
})

everyStore('a custom recipe is kept once, by digest, for its tenant alone', async (store) => {
  const recipe = { ...TENANT, digest: 'd1', recipe: '{"title":"Ümläut"}', createdAt: NOON }
  await store.hooks.create(newHook({ recipe: 'custom/d1' }, recipe))
  await store.hooks.create(newHook({ recipe: 'custom/d1' }, { ...recipe, createdAt: NOON + 1 }))
  assert.equal(await store.hooks.recipe(TENANT, 'd1'), recipe.recipe)
  assert.equal(await store.hooks.recipe(TENANT, 'd2'), null)
  assert.equal(await store.hooks.recipe(OTHER, 'd1'), null)
})

everyDriver(
  'the latest deliveries of a hook: its events and refusals, newest first, bounded, and no other',
  async (database) => {
    const store = await database.open()
    const keyId = 'HOOKHOOK01'
    const ids: number[] = []
    for (let n = 0; n < 4; n += 1) ids.push(await append(store, { keyId, recipe: 'github/1', sourceRef: `r${n}` }))
    await append(store, { keyId: 'HOOKHOOK02', recipe: 'github/1' })
    await append(store, { keyId, recipe: 'github/1', ...OTHER })
    await indexAll(store)
    await append(store, { keyId, recipe: 'github/1', sourceRef: 'not indexed' })
    for (const code of ['invalid_json', 'payload_too_large'] as const)
      await store.refusals.add([refusal({ keyId, code })], { maxCount: 10 })
    await store.refusals.add([refusal({ keyId: 'HOOKHOOK02' })], { maxCount: 10 })
    const { events, refusals } = await store.hooks.deliveries(TENANT, keyId, 3)
    assert.deepEqual(
      events.map(({ event }) => event.sourceRef),
      ['not indexed', 'r3', 'r2'],
    )
    assert.deepEqual(
      events.map(({ entry }) => entry !== null),
      [false, true, true],
    )
    assert.deepEqual(
      refusals.map(({ code }) => code),
      ['payload_too_large', 'invalid_json'],
    )
    assert.deepEqual(await store.hooks.deliveries(OTHER, 'HOOKHOOK02', 3), { events: [], refusals: [] })
  },
)

everyDriver(
  'an event whose recipe is not known, or cannot be used, is marked and handed out, and the index goes on',
  async (database) => {
    const store = await database.open()
    await store.hooks.keepRecipe({ ...TENANT, digest: 'broken', recipe: '{"index":7', createdAt: NOON })
    await store.hooks.keepRecipe({
      ...TENANT,
      digest: 'hostile',
      recipe: '{"index":{"text":["{nowhere}"]}}',
      createdAt: NOON,
    })
    const recipes = ['custom/unknown', 'custom/broken', 'custom/hostile', 'telegram/99', 'custom/', '']
    const outcomes = await store.journal.append(recipes.map((recipe) => item({ recipe })))
    const [after] = await store.journal.append([item({ body: { message: { text: 'fine' } } })])
    await indexAll(store)
    for (const outcome of outcomes) {
      const entry = await store.events.indexEntry((await store.events.find(idOf(outcome)))!)
      assert.match(entry?.unindexed ?? '', /recipe is not known here/)
    }
    const entry = await store.events.indexEntry((await store.events.find(idOf(after)))!)
    assert.deepEqual([entry?.unindexed, entry?.snippet], [null, 'fine'])
  },
)

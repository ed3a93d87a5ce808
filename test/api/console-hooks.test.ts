// Hooks in the console's interface: made, shown, rotated, switched; what each role and each tenant sees.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { BUILT_IN_RECIPES } from '../../src/model/recipes/built-in.ts'
import { newestRecipe } from '../../src/model/recipes/built-in.ts'
import { startTestApp } from '../support/app.ts'
import { drivers } from '../support/drivers.ts'
import { createHook } from '../support/hooks.ts'
import { operatorOf, type TestOperator } from '../support/operators.ts'
import { sharedApp } from '../support/shared-app.ts'
import { until } from '../support/until.ts'

interface Detail {
  readonly key_id: string
  readonly url: string | null
  readonly verify_token: string | null
  readonly secret: string | null
  readonly secrets: readonly { until: string | null }[] | null
  readonly setup: { readonly steps: readonly string[] } | null
  readonly state: string
  readonly recipe: string
  readonly max_body_bytes: number | null
  readonly rate_limit: string | null
  readonly rotated_from: string | null
}

interface Delivery {
  readonly verdict: string
  readonly reason: string | null
  readonly source_ref: string | null
  readonly is_sample: boolean
  readonly snippet: string | null
}

const HOOKS = '/v1/console/hooks'

for (const driver of drivers) {
  describe(`hooks in the console on ${driver.name}`, () => {
    const shared = sharedApp(driver, { settings: { publicUrl: 'https://in.example.com/intray' } })
    const create = async (operator: TestOperator, body: object, tenant?: string): Promise<Detail> => {
      const answer = await operator.post(HOOKS, body, tenant)
      assert.equal(answer.status, 200, answer.text)
      return answer.json!.hook as Detail
    }
    const post = (path: string, body: string, headers: Record<string, string> = {}) =>
      shared.app.send({ method: 'POST', path, body, headers: { 'Content-Type': 'application/json', ...headers } })
    const pathOf = ({ url }: Detail) => new URL(url!).pathname.replace('/intray', '')

    test('a hook that is made works at its address, with the secret that was shown once', async () => {
      const operator = await operatorOf(shared.app)
      const hook = await create(operator, {
        recipe: 'telegram',
        name: 'bot',
        rate_limit: '100/1s',
        max_body_bytes: '2048',
      })
      assert.match(hook.url!, /^https:\/\/in\.example\.com\/intray\/v1\/hooks\/ith_\w{47}$/)
      assert.deepEqual(
        [hook.recipe, hook.state, hook.rate_limit, hook.max_body_bytes],
        ['telegram/1', 'active', '100/1s', 2048],
      )
      assert.ok(hook.setup!.steps.some((step) => step.includes(hook.url!)))
      const headers = { 'X-Telegram-Bot-Api-Secret-Token': hook.secret! }
      assert.equal((await post(pathOf(hook), '{"update_id":1}', headers)).status, 200)
      const shown = (await operator.get(`${HOOKS}/${hook.key_id}`)).json!.hook as Detail
      assert.deepEqual([shown.url, shown.secret ?? null, shown.secrets], [hook.url, null, [{ until: null }]])
      const list = (await operator.get(HOOKS)).json!.hooks as Detail[]
      assert.ok(list.some(({ key_id: keyId }) => keyId === hook.key_id))
      assert.ok(!JSON.stringify(list).includes('ith_'))
      const tokens = JSON.stringify((await operator.get('/v1/console/tokens')).json)
      assert.ok(!tokens.includes(hook.key_id), 'a hook is in no list of tokens')
    })

    test('a viewer sees no address, no verify token and no secret', async () => {
      const { app } = shared
      const hook = await createHook(app, 'whatsapp', { secret: 's' })
      const [admin, viewer] = [await operatorOf(app), await operatorOf(app, { role: 'viewer' })]
      const seen = (await admin.get(`${HOOKS}/${hook.keyId}`)).json!.hook as Detail
      assert.ok(seen.url!.endsWith(hook.hookId))
      assert.equal(seen.verify_token, hook.verifyToken)
      const answer = await viewer.get(`${HOOKS}/${hook.keyId}`)
      assert.deepEqual([answer.status, (answer.json!.hook as Detail).url], [200, null])
      assert.ok(!answer.text.includes(hook.hookId.slice(15)) && !answer.text.includes(hook.verifyToken))
      for (const change of ['rotate', 'disable', 'samples'])
        assert.equal((await viewer.post(`${HOOKS}/${hook.keyId}/${change}`, '{}')).json?.error, 'forbidden_role')
    })

    test('hooks of another tenant are not found, whatever is asked of them', async () => {
      const { app } = shared
      const hook = await createHook(app, 'elementor', { accountId: 8 })
      const operator = await operatorOf(app)
      for (const path of ['', '/deliveries'])
        assert.equal((await operator.get(`${HOOKS}/${hook.keyId}${path}`)).status, 404)
      for (const [path, body] of [
        ['rotate', '{"what":"address"}'],
        ['disable', ''],
        ['enable', ''],
        ['samples', '{}'],
      ] as const)
        assert.equal((await operator.post(`${HOOKS}/${hook.keyId}/${path}`, body)).json?.error, 'not_found', path)
      assert.ok(!(await operator.get(HOOKS)).text.includes(hook.keyId))
      assert.equal((await operator.get(`${HOOKS}/${hook.keyId}`, '8/42')).status, 200)
      const token = await operator.post(`/v1/console/tokens/${(await createHook(app, 'elementor')).keyId}/rotate`, '{}')
      assert.equal(token.json?.error, 'not_found', 'a hook is not rotated as a token')
    })

    test('a rotated address: the old one works for the overlap, the successor has its secrets', async () => {
      const { app } = shared
      const operator = await operatorOf(app)
      const hook = await create(operator, { recipe: 'telegram' })
      const headers = { 'X-Telegram-Bot-Api-Secret-Token': hook.secret! }
      const rotate = (keyId: string, body: object) => operator.post(`${HOOKS}/${keyId}/rotate`, body)
      const rotated = (await rotate(hook.key_id, { what: 'address', overlap: '1h' })).json!.hook as Detail
      assert.equal(rotated.rotated_from, hook.key_id)
      for (const one of [hook, rotated]) assert.equal((await post(pathOf(one), '{"update_id":9}', headers)).status, 200)
      assert.match(String((await rotate(hook.key_id, { what: 'address' })).json?.message), new RegExp(rotated.key_id))
      await rotate(rotated.key_id, { what: 'address' })
      await until(
        'the old address is refused',
        async () => (await post(pathOf(rotated), '{}', headers)).json?.error === 'hook_disabled',
      )
      const secret = (await rotate(hook.key_id, { what: 'secret' })).json!.hook as Detail
      assert.match(secret.secret!, /^\w{32}$/)
      for (const body of [{}, { what: 'both' }, { what: 'secret', secret: 'a b' }, { what: 'secret', overlap: 'x' }])
        assert.equal((await rotate(hook.key_id, body)).status, 400, JSON.stringify(body))
    })

    test('disabled and enabled', async () => {
      const { app } = shared
      const operator = await operatorOf(app)
      const hook = await create(operator, { recipe: 'gravity-forms' })
      // Where the machine stands still for longer than the answer waits, it says that it is not in force yet: asked again, it is.
      const change = (name: 'disable' | 'enable') =>
        until(`${name} is in force`, async () => {
          const { json } = await operator.post(`${HOOKS}/${hook.key_id}/${name}`, '')
          return json?.in_force === true && (json.hook as Detail)
        })
      assert.equal((await change('disable')).state, 'disabled')
      assert.equal((await post(pathOf(hook), '{}')).json?.error, 'hook_disabled', 'in force when it is answered')
      await change('enable')
      assert.equal((await post(pathOf(hook), '{}')).status, 200)
    })

    test('the latest deliveries: stored, refused with the reason, samples; ten, newest first', async () => {
      const { app } = shared
      const operator = await operatorOf(app)
      const hook = await create(operator, { recipe: 'telegram' })
      const headers = { 'X-Telegram-Bot-Api-Secret-Token': hook.secret! }
      const deliveries = async () =>
        (await operator.get(`${HOOKS}/${hook.key_id}/deliveries`)).json!.deliveries as Delivery[]
      assert.deepEqual(await deliveries(), [])
      await post(pathOf(hook), '{"update_id":51,"message":{"text":"hello"}}', headers)
      const refused = await post(pathOf(hook), '{"update_id":52}', { 'X-Telegram-Bot-Api-Secret-Token': 'no' })
      await until('the refusal is kept', async () => (await deliveries()).length === 2)
      const sample = await operator.post(`${HOOKS}/${hook.key_id}/samples`, '{}')
      assert.equal((sample.json!.read as Delivery).source_ref, 'tg:hook:100001')
      await app.indexed()
      const found = await deliveries()
      assert.deepEqual(found.map(({ verdict, is_sample: isSample }) => [verdict, isSample]).toSorted(), [
        ['invalid_signature', false],
        ['stored', false],
        ['stored', true],
      ])
      assert.equal(found.find(({ verdict }) => verdict !== 'stored')?.reason, refused.json?.message)
      assert.equal(found.find(({ source_ref: ref }) => ref === `tg:${hook.key_id}:51`)?.snippet, 'hello')
      const stored = await app.store.events.find(Number(sample.json!.id))
      assert.deepEqual(
        [stored?.sourceRef, stored?.channelRef, stored?.origin],
        [null, null, 'test'],
        'never taken for a message',
      )
      for (let n = 0; n < 12; n += 1) await post(pathOf(hook), `{"update_id":${100 + n}}`, headers)
      const newest = await deliveries()
      assert.deepEqual([newest.length, newest[0]?.source_ref], [10, `tg:${hook.key_id}:111`])
    })

    test('a sample of every recipe is read: contact or text, and what would deduplicate it', async () => {
      const { app } = shared
      const operator = await operatorOf(app)
      for (const { name, sourceRef } of BUILT_IN_RECIPES) {
        const hook = await createHook(app, name, { secret: 'c2VjcmV0c2VjcmV0' })
        const answer = await operator.post(`${HOOKS}/${hook.keyId}/samples`, '{}')
        assert.equal(answer.status, 200, `${name}: ${answer.text}`)
        const read = answer.json!.read as Delivery & {
          contact: { name: string | null; email: string | null }
          warnings: unknown[]
        }
        assert.ok((read.snippet ?? read.contact.name ?? read.contact.email) !== null, `${name}: ${answer.text}`)
        if (sourceRef.length > 0) assert.notEqual(read.source_ref, null, `${name}: ${answer.text}`)
      }
    })

    test('a custom recipe is taken with its hook, and one with mistakes is refused with all of them', async () => {
      const operator = await operatorOf(shared.app)
      const definition = 'title: Shop\nsignature: { kind: none }\nsource_ref: ["{/id}"]\n'
      const hook = await create(operator, { recipe: 'custom', definition, scope: 'shop' })
      assert.match(hook.recipe, /^custom\/[0-9a-f]{24}$/)
      assert.equal((await post(pathOf(hook), '{"id":7}')).status, 200)
      const wrong = await operator.post(HOOKS, {
        recipe: 'custom',
        definition: 'title: ""\nsignature: { kind: magic }\nx: 1',
      })
      assert.equal(wrong.status, 422)
      assert.ok((wrong.json!.fields as object[]).length >= 3, wrong.text)
      for (const body of [
        { recipe: 'custom' },
        { recipe: 'telegramm' },
        { recipe: 'telegram', definition },
        {},
        { recipe: 'elementor', secret: 'x' },
      ])
        assert.equal((await operator.post(HOOKS, body)).status, 400, JSON.stringify(body))
      for (const more of [
        { scope: 'A B' },
        { name: 'x'.repeat(201) },
        { expires_in: '1s' },
        { rate_limit: 'x' },
        { max_body_bytes: '7' },
        { secret: '' },
      ])
        assert.equal((await operator.post(HOOKS, { recipe: 'telegram', ...more })).status, 400, JSON.stringify(more))
    })

    test('a vendor that makes the secret: the hook is made without, and refuses everything until it is set', async () => {
      const operator = await operatorOf(shared.app)
      const hook = await create(operator, { recipe: 'stripe' })
      assert.deepEqual([hook.secret, hook.secrets], [null, []])
      const refused = await post(pathOf(hook), '{"id":"evt_1"}', { 'Stripe-Signature': 't=1,v1=aa' })
      assert.deepEqual([refused.status, refused.json?.error], [401, 'invalid_signature'])
      assert.match(String(refused.json?.message), /no secret/)
      const unmade = await operator.post(`${HOOKS}/${hook.key_id}/rotate`, { what: 'secret' })
      assert.deepEqual([unmade.status, /The vendor makes this secret/.test(unmade.text)], [400, true])
      const set = await operator.post(`${HOOKS}/${hook.key_id}/rotate`, { what: 'secret', secret: 'whsec_abcdef' })
      assert.deepEqual(
        [(set.json!.hook as Detail).secret, (set.json!.hook as Detail).secrets],
        [null, [{ until: null }]],
      )
    })

    test('the recipes are listed with what to do at the vendor', async () => {
      const operator = await operatorOf(shared.app, { role: 'viewer' })
      const recipes = (await operator.get('/v1/console/recipes')).json!.recipes as {
        name: string
        has_sample: boolean
      }[]
      assert.deepEqual(recipes.map(({ name }) => name).toSorted(), BUILT_IN_RECIPES.map(({ name }) => name).toSorted())
      assert.ok(recipes.every(({ has_sample: has }) => has))
      assert.ok(newestRecipe('telegram'))
    })

    test('503: without the right key of secrets no hook is made, and others are shown without address', async (t) => {
      const app = await startTestApp(t, driver, { settings: { secretsKey: Buffer.alloc(32, 9).toString('base64') } })
      const hook = await createHook(app, 'github')
      const operator = await operatorOf(app)
      const shown = (await operator.get(`${HOOKS}/${hook.keyId}`)).json!.hook as Detail
      assert.deepEqual([shown.url, shown.secrets], [null, null])
      const rotated = await operator.post(`${HOOKS}/${hook.keyId}/rotate`, { what: 'secret' })
      assert.deepEqual([rotated.status, rotated.json?.error], [503, 'secrets_unavailable'])
    })
  })
}

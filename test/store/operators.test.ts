// Conformance: operators. Every promise of src/store/contract/operators.ts.

import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import type { AuditEntry } from '../../src/model/operator.ts'
import { newUuid, randomBase62 } from '../../src/runtime/id.ts'
import type { NewOperator, SessionRecord } from '../../src/store/contract/operators.ts'
import { NOON, TENANT } from './rows.ts'
import { everyDriver, everyStore, failure } from './suite.ts'

function operator(fields: Partial<NewOperator> = {}): NewOperator {
  const id = randomBase62(10)
  return {
    id,
    name: `op-${id.toLowerCase()}`,
    role: 'viewer',
    tenants: null,
    password: null,
    createdAt: NOON,
    ...fields,
  }
}

/** In the order of the number; those of one millisecond have none. */
const uuid = (n: number) => `01a1e021-7960-7${n}00-8000-000000000000`

const digest = (text: string) => hash('sha256', text, 'buffer')

function session(operatorId: string, text: string, fields: Partial<SessionRecord> = {}): SessionRecord {
  return { hash: digest(text), operatorId, createdAt: NOON, expiresAt: NOON + 1000, seenAt: NOON, ...fields }
}

function entry(fields: Partial<AuditEntry> = {}): AuditEntry {
  return {
    id: newUuid(),
    at: NOON,
    operatorId: 'x',
    operator: 'ada',
    action: 'sign_in',
    tenant: null,
    target: null,
    requestId: null,
    address: null,
    ...fields,
  }
}

everyStore('an operator comes back as made, and names are compared exactly', async (store) => {
  const tenants = [TENANT, { accountId: 1, companyId: 2 ** 40 }]
  const made = operator({ name: 'ada', role: 'admin', tenants, password: 'scrypt$x' })
  await store.operators.create(made)
  assert.deepEqual(await store.operators.findByName('ada'), { ...made, disabledAt: null })
  for (const other of ['Ada', 'ad', 'ada ', '', "' OR 1=1 --"]) {
    assert.equal(await store.operators.findByName(other), null)
  }
})

everyStore('a new role and a removal end sessions and links, and the last admin stays unless told', async (store) => {
  const { operators } = store
  const [ada, bob] = [operator({ name: 'ada', role: 'admin' }), operator({ name: 'bob', role: 'admin' })]
  const disabled = operator({ name: 'eve', role: 'admin' })
  for (const one of [ada, bob, disabled, operator({ name: 'vera' })]) await operators.create(one)
  await operators.setDisabled('eve', NOON)
  const signedIn = async ({ id, name }: NewOperator) => {
    assert.ok(await operators.openSession(session(id, name), 5, null))
    await operators.addLink({ operatorId: id, hash: digest(`link ${name}`), expiresAt: NOON + 9 })
    assert.ok(await operators.findSession(digest(name), NOON), 'control')
    return async () => [
      await operators.findSession(digest(name), NOON),
      await operators.useLink(digest(`link ${name}`), NOON),
    ]
  }
  const [ofAda, ofBob] = [await signedIn(ada), await signedIn(bob)]
  assert.deepEqual(await operators.setRole('ada', 'viewer', false), { ...ada, role: 'viewer', disabledAt: null })
  assert.deepEqual(await ofAda(), [null, null])

  assert.equal(await operators.remove('bob', false), 'last_admin')
  assert.equal(await operators.setRole('bob', 'viewer', false), 'last_admin')
  assert.equal((await operators.findByName('bob'))?.role, 'admin')
  assert.ok(
    (await ofBob()).every((found) => found !== null),
    'a refused change ends nothing',
  )
  assert.equal(
    await operators.setRole('bob', 'viewer', true).then((changed) => (changed as { role: string }).role),
    'viewer',
  )
})

everyStore('of two admins that are removed at once one stays', async (store) => {
  const { operators } = store
  for (const name of ['ada', 'bob']) await operators.create(operator({ name, role: 'admin' }))
  const outcomes = await Promise.all(['ada', 'bob'].map((name) => operators.remove(name, false)))
  assert.equal(outcomes.filter((outcome) => outcome === 'last_admin').length, 1)
  assert.equal((await operators.list()).length, 1)
  const [left] = await operators.list()
  assert.equal(((await operators.remove(left!.name, true)) as { name: string }).name, left!.name)
  assert.deepEqual(await operators.list(), [])
  assert.equal(await operators.remove('nobody', true), null)
  assert.equal(await operators.setRole('nobody', 'admin', true), null)
  await operators.create(operator({ name: left!.name }))
})

everyStore('a name that exists is rejected, and the operator who has it stays', async (store) => {
  const first = operator({ name: 'ada' })
  await store.operators.create(first)
  await assert.rejects(store.operators.create(operator({ name: 'ada', role: 'admin' })), failure('rejected'))
  assert.deepEqual(
    (await store.operators.list()).map(({ id }) => id),
    [first.id],
  )
})

everyStore('operators are listed by name', async (store) => {
  for (const name of ['zoe', 'ada', 'bob']) await store.operators.create(operator({ name }))
  assert.deepEqual(
    (await store.operators.list()).map(({ name }) => name),
    ['ada', 'bob', 'zoe'],
  )
})

everyStore('a session is found by its hash until it expires', async (store) => {
  const made = operator()
  await store.operators.create(made)
  const opened = session(made.id, 'a')
  await store.operators.openSession(opened, 10)
  const found = await store.operators.findSession(digest('a'), NOON + 999)
  assert.equal(found?.operator.name, made.name)
  assert.deepEqual({ ...found.session, hash: Buffer.from(found.session.hash) }, opened)
  assert.equal(await store.operators.findSession(digest('a'), NOON + 1000), null)
  assert.equal(await store.operators.findSession(digest('b'), NOON), null)
})

everyStore(
  'a session is not opened for a password that was changed, or an operator that was disabled, since',
  async (store) => {
    const made = operator({ password: 'as it was' })
    await store.operators.create(made)
    assert.equal(await store.operators.openSession(session(made.id, 'a'), 10, 'as it was'), true)
    assert.equal(await store.operators.openSession(session(made.id, 'b'), 10, null), false)
    await store.operators.setPassword(made.name, 'another')
    assert.equal(await store.operators.openSession(session(made.id, 'c'), 10, 'as it was'), false)
    await store.operators.setDisabled(made.name, NOON)
    assert.equal(await store.operators.openSession(session(made.id, 'd'), 10, 'another'), false)
    await store.operators.setDisabled(made.name, null)
    for (const text of ['a', 'b', 'c', 'd'])
      assert.equal(await store.operators.findSession(digest(text), NOON), null, text)
    assert.equal(await store.operators.openSession(session(made.id, 'e'), 10, 'another'), true)
  },
)

everyStore('when a session was seen moves forward and never back', async (store) => {
  const made = operator()
  await store.operators.create(made)
  await store.operators.openSession(session(made.id, 'a'), 10)
  for (const at of [NOON + 5, NOON + 3]) await store.operators.touchSession(digest('a'), at)
  assert.equal((await store.operators.findSession(digest('a'), NOON))?.session.seenAt, NOON + 5)
})

everyStore('an operator has so many sessions at most, and the oldest make room for no one else’s', async (store) => {
  const [made, other] = [operator(), operator()]
  for (const one of [made, other]) await store.operators.create(one)
  await store.operators.openSession(session(other.id, 'other', { createdAt: NOON - 100 }), 2)
  for (const n of [1, 2, 3]) await store.operators.openSession(session(made.id, `s${n}`, { createdAt: NOON + n }), 2)
  const there = await Promise.all(
    ['s1', 's2', 's3', 'other'].map(async (text) => (await store.operators.findSession(digest(text), NOON)) !== null),
  )
  assert.deepEqual(there, [false, true, true, true])
})

everyStore('signing out ends one session, and everywhere all of the operator’s', async (store) => {
  const [made, other] = [operator(), operator()]
  for (const one of [made, other]) await store.operators.create(one)
  for (const text of ['a', 'b', 'c']) await store.operators.openSession(session(made.id, text), 10)
  await store.operators.openSession(session(other.id, 'other'), 10)
  await store.operators.closeSession(digest('a'))
  assert.equal(await store.operators.findSession(digest('a'), NOON), null)
  assert.ok(await store.operators.findSession(digest('b'), NOON))
  await store.operators.closeSessions(made.id)
  for (const text of ['b', 'c']) assert.equal(await store.operators.findSession(digest(text), NOON), null)
  assert.ok(await store.operators.findSession(digest('other'), NOON))
})

everyStore('a new password, and being disabled, end every session and link', async (store) => {
  for (const change of [
    (name: string) => store.operators.setPassword(name, 'new'),
    (name: string) => store.operators.setDisabled(name, NOON),
  ]) {
    const made = operator()
    await store.operators.create(made)
    await store.operators.openSession(session(made.id, made.id), 10)
    await store.operators.addLink({ operatorId: made.id, hash: digest(`link ${made.id}`), expiresAt: NOON + 10 })
    await change(made.name)
    assert.equal(await store.operators.findSession(digest(made.id), NOON), null)
    assert.equal(await store.operators.useLink(digest(`link ${made.id}`), NOON), null)
  }
  assert.equal(await store.operators.setPassword('nobody', 'x'), null)
  assert.equal(await store.operators.setDisabled('nobody', NOON), null)
})

everyStore(
  'a disabled operator has neither sessions nor links, whenever they were made, until enabled',
  async (store) => {
    const made = operator()
    await store.operators.create(made)
    assert.equal((await store.operators.setDisabled(made.name, NOON))?.disabledAt, NOON)
    await store.operators.openSession(session(made.id, 'a'), 10)
    await store.operators.addLink({ operatorId: made.id, hash: digest('link'), expiresAt: NOON + 10 })
    assert.equal(await store.operators.findSession(digest('a'), NOON), null)
    assert.equal(await store.operators.useLink(digest('link'), NOON), null)
    assert.equal((await store.operators.setDisabled(made.name, null))?.disabledAt, null)
  },
)

everyStore('a link works once, not when expired, and not after the next one', async (store) => {
  const made = operator()
  await store.operators.create(made)
  const add = (text: string) =>
    store.operators.addLink({ operatorId: made.id, hash: digest(text), expiresAt: NOON + 10 })
  await add('a')
  assert.equal(await store.operators.useLink(digest('b'), NOON), null)
  assert.equal((await store.operators.useLink(digest('a'), NOON))?.name, made.name)
  assert.equal(await store.operators.useLink(digest('a'), NOON), null)
  await add('c')
  await add('d')
  assert.equal(await store.operators.useLink(digest('c'), NOON), null)
  assert.equal(await store.operators.useLink(digest('d'), NOON + 10), null)
})

everyDriver('of several that use one link at once, one gets the operator', async (database) => {
  const stores = [await database.open('server'), await database.open('tool'), await database.open('tool')]
  const made = operator()
  await stores[0]!.operators.create(made)
  for (let n = 0; n < 10; n++) {
    await stores[0]!.operators.addLink({ operatorId: made.id, hash: digest(`l${n}`), expiresAt: NOON + 10 })
    const used = await Promise.all(stores.map((store) => store.operators.useLink(digest(`l${n}`), NOON)))
    assert.equal(used.filter((one) => one !== null).length, 1)
  }
})

everyDriver('of several that make the first operator at once, one does', async (database) => {
  const stores = [await database.open('server'), await database.open('tool'), await database.open('tool')]
  const made = await Promise.all(stores.map((store) => store.operators.createFirst(operator())))
  assert.deepEqual(made.toSorted(), [false, false, true])
  assert.equal((await stores[0]!.operators.list()).length, 1)
})

everyStore('what operators did is listed newest first, page by page, as it was written', async (store) => {
  const entries = [
    entry({ id: uuid(1), action: 'sign_in_failed', operatorId: null, operator: '', address: '192.0.2.7' }),
    entry({ id: uuid(2), tenant: TENANT, target: '812', requestId: newUuid(), action: 'promote' }),
    entry({ id: uuid(3), at: NOON + 5, target: 'ünï' }),
  ]
  for (const one of entries) await store.operators.addAudit(one)
  const first = await store.operators.listAudit(null, 2)
  const second = await store.operators.listAudit(first.at(-1)!.id, 2)
  assert.deepEqual([...first, ...second], entries.toReversed())
})

everyStore('pruning clears away what is over, and nothing else', async (store) => {
  const made = operator()
  await store.operators.create(made)
  await store.operators.openSession(session(made.id, 'old', { expiresAt: NOON }), 10)
  await store.operators.openSession(session(made.id, 'new', { expiresAt: NOON + 1 }), 10)
  await store.operators.addLink({ operatorId: made.id, hash: digest('link'), expiresAt: NOON + 1 })
  await store.operators.addAudit(entry({ at: NOON - 11 }))
  await store.operators.addAudit(entry({ at: NOON - 10, target: 'kept' }))
  await store.operators.prune(NOON, NOON - 10)
  assert.equal(await store.operators.findSession(digest('old'), NOON - 5), null)
  assert.ok(await store.operators.findSession(digest('new'), NOON))
  assert.deepEqual(
    (await store.operators.listAudit(null, 10)).map(({ target }) => target),
    ['kept'],
  )
  assert.ok(await store.operators.useLink(digest('link'), NOON))
})

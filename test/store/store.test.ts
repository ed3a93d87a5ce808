// Conformance: the store as a whole. Every promise of src/store/contract/store.ts.

import assert from 'node:assert/strict'
import { StoreFailure } from '../../src/store/contract/failure.ts'
import { openStore } from '../../src/store/open.ts'
import { idOf, item, newToken, refusal } from './rows.ts'
import { append, everyDriver, everyStore, payloadText } from './suite.ts'

everyStore('it tells the operator what it is, how durable, and no secret', async (store, { driver }) => {
  assert.equal(store.facts.driver, driver.name)
  assert.ok(Number(store.facts.schema_version) > 0)
  assert.match(String(store.facts.database_uuid), /^[0-9a-f-]{36}$/)
  for (const [name, value] of Object.entries(store.facts)) {
    assert.ok(['string', 'number'].includes(typeof value), `${name} is text or a number`)
    assert.doesNotMatch(name, /key|secret|password/)
  }
})

everyDriver('a database keeps its identity, and two databases have two', async (database, t) => {
  const first = await database.open('server')
  const tool = await database.open('tool')
  assert.equal(tool.facts.database_uuid, first.facts.database_uuid)
  await first.close()
  const again = await database.open('server')
  assert.equal(again.facts.database_uuid, first.facts.database_uuid)
  // Made by the store itself, not from a template of the tests.
  const [one, other] = await Promise.all(
    [1, 2].map(async () => {
      const store = await openStore(await database.driver.newDatabase(), { role: 'server' })
      t.after(() => store.close())
      return store.facts.database_uuid
    }),
  )
  assert.notEqual(one, other)
})

everyStore('a probe does a write and leaves nothing to see', async (store) => {
  await store.probe()
  await store.probe()
  assert.equal(await store.events.watermark(), 0)
  assert.equal(await store.tokens.generation(), 0)
})

everyStore('closing finishes what was begun', async (store, database) => {
  const calls = Array.from({ length: 30 }, (_, n) => store.journal.append([item({ body: `${n}` })]))
  const others = [
    store.tokens.create(newToken()),
    store.refusals.add([refusal()], { maxCount: 9 }),
    store.index.step({ maxRows: 5, maxBytes: 1000 }),
    store.probe(),
  ]
  await store.close()
  await Promise.all(others)
  const ids = (await Promise.all(calls)).map(([outcome]) => idOf(outcome))
  const reopened = await database.open('server')
  for (const [n, id] of ids.entries()) assert.equal(await payloadText(reopened, id), `${n}`)
})

everyStore('closing twice is fine', async (store) => {
  await append(store)
  await Promise.all([store.close(), store.close()])
  await store.close()
})

everyStore('after the close every write is refused, and none is left waiting', async (store) => {
  await append(store)
  await store.close()
  for (const write of [
    () => store.journal.append([item()]),
    () => store.tokens.create(newToken()),
    () => store.index.step({ maxRows: 1, maxBytes: 1 }),
    () => store.probe(),
  ]) {
    await assert.rejects(write, StoreFailure)
  }
})

everyStore('a close is nothing fatal', async (store) => {
  const told: Error[] = []
  store.onFatal((failure) => told.push(failure))
  await append(store)
  await store.close()
  await assert.rejects(store.probe())
  assert.deepEqual(told, [])
})

everyDriver('when the server is gone, the next one takes over at once', async (database) => {
  for (let round = 0; round < 3; round++) {
    const store = await database.open('server')
    await append(store)
    await store.close()
  }
})

everyDriver('a tool opens beside a server and leaves it alone', async (database) => {
  const server = await database.open('server')
  for (let round = 0; round < 5; round++) {
    const tool = await database.open('tool')
    await append(tool)
    await append(server)
    await tool.close()
  }
  assert.equal((await server.index.progress()).lag, 10)
})

everyDriver('a second server is refused, unless the database takes several', async (database) => {
  const first = await database.open('server')
  if (first.traits.concurrentWriters) {
    const second = await database.open('server')
    assert.equal((await second.events.find(await append(first)))?.kind, 'event')
    assert.equal((await first.events.find(await append(second)))?.kind, 'event')
    await second.close()
  } else {
    await assert.rejects(database.open('server'), { name: 'StoreRefused', message: /server/ })
  }
  await append(first)
  await first.close()
  await append(await database.open('server'))
})

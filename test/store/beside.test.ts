// Conformance: a command beside a running server. What one writes the other sees, and neither makes the other fail,
// however busy it is.

import assert from 'node:assert/strict'
import type { Store } from '../../src/store/contract/store.ts'
import { startChild } from './child.ts'
import { idOf, item, NOON, newToken } from './rows.ts'
import { everyDriver, indexAll, payloadText } from './suite.ts'

everyDriver('a token made, disabled and rotated by a tool is so for the server at once', async (database) => {
  const server = await database.open('server')
  const tool = await database.open('tool')
  const token = newToken()
  const known = await server.tokens.generation()
  await tool.tokens.create(token)
  assert.equal((await server.tokens.find(token.keyId))?.isActive, true)
  const made = await server.tokens.generation()
  assert.ok(made > known)
  await tool.tokens.setActive(token.keyId, false, NOON)
  assert.deepEqual(
    (await server.tokens.changedSince(made)).map(({ keyId, isActive }) => ({ keyId, isActive })),
    [{ keyId: token.keyId, isActive: false }],
  )
  const successor = newToken({ rotatedFrom: token.keyId })
  await tool.tokens.rotate(successor, null, NOON)
  assert.equal((await server.tokens.find(successor.keyId))?.rotatedFrom, token.keyId)
})

/** Keeps the writer of a server busy: there is always another batch waiting. */
function saturate(server: Store): { stop(): Promise<{ readonly calls: number; readonly ids: readonly number[] }> } {
  let stopped = false
  let calls = 0
  const ids: number[] = []
  const write = async (name: number): Promise<void> => {
    for (let n = 0; !stopped; n++) {
      const items = Array.from({ length: 64 }, (_, k) => item({ sourceRef: `${name}-${n}-${k}`, channelRef: 'hot' }))
      for (const outcome of await server.journal.append(items)) ids.push(idOf(outcome))
      calls += 1
    }
  }
  const index = async (): Promise<void> => {
    while (!stopped) await server.index.step({ maxRows: 200, maxBytes: 1 << 20 })
  }
  const running = Promise.all([write(0), write(1), write(2), write(3), index()])
  return {
    stop: async () => {
      stopped = true
      await running
      return { calls, ids }
    },
  }
}

everyDriver('tools in other processes write beside a saturated server: nobody fails', async (database, t) => {
  const server = await database.open('server')
  const load = saturate(server)
  const children = [
    startChild(t, 'write-tokens', database.url, '40'),
    startChild(t, 'write-events', database.url, '40'),
  ]
  const ended = await Promise.all(children.map((child) => child.exited))
  const { calls, ids } = await load.stop()
  for (const [n, { code }] of ended.entries()) assert.equal(code, 0, children[n]!.lines.join('\n'))
  for (const child of children) assert.equal(child.lines.at(-1), 'failures 0')
  assert.ok(calls > 0)
  assert.equal(new Set(ids).size, ids.length, 'no id was given out twice')
  assert.equal((await server.tokens.list()).length, 40)
  const events = children[1]!.lines.filter((line) => line.startsWith('stored ')).map((line) => Number(line.slice(7)))
  assert.equal(events.length, 40)
  for (const [n, id] of events.entries()) assert.equal(await payloadText(server, id), `from a tool ${n}`)
  assert.equal((await indexAll(server)).lag, 0)
  const hot = await server.events.conversation({ accountId: 7, companyId: 42 }, 'hot')
  assert.equal(hot?.eventCount, ids.length)
})

everyDriver('two stores append the same source_refs at once: one event each', async (database) => {
  const stores = [await database.open('server'), await database.open('tool'), await database.open('tool')]
  const ids = new Map<string, Set<number>>()
  let stored = 0
  const send = async (store: Store): Promise<void> => {
    for (let n = 0; n < 40; n++) {
      const refs = Array.from({ length: 5 }, (_, k) => `ref-${n}-${k}`)
      const outcomes = await store.journal.append(refs.map((sourceRef) => item({ sourceRef, body: 'A' })))
      for (const [k, outcome] of outcomes.entries()) {
        ids.set(refs[k]!, (ids.get(refs[k]!) ?? new Set()).add(idOf(outcome)))
        if (outcome.outcome === 'stored') stored += 1
      }
    }
  }
  await Promise.all(stores.map(send))
  assert.equal(stored, 200)
  assert.equal(ids.size, 200)
  for (const found of ids.values()) assert.equal(found.size, 1)
})

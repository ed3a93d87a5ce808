// Conformance: the running servers. Every promise of src/store/contract/nodes.ts.

import assert from 'node:assert/strict'
import type { NodeState } from '../../src/store/contract/nodes.ts'
import type { Store } from '../../src/store/contract/store.ts'
import { until } from '../support/until.ts'
import { startChild } from './child.ts'
import { newToken } from './rows.ts'
import { everyDriver } from './suite.ts'

/** Those alive, of whom there are some: a server that stood still for seconds is among them again with its next sign of life. */
function living({ nodes }: Store): Promise<readonly NodeState[]> {
  return until('a server is alive', async () => {
    const live = await nodes.live()
    return live.length > 0 && live
  })
}

everyDriver('a server that reports is alive, with the generation it follows, for every store', async (database) => {
  const server = await database.open('server')
  const tool = await database.open('tool')
  assert.deepEqual(await server.nodes.live(), [])
  await server.nodes.report({ nodeId: 'node-1', tokenGeneration: 0 })
  await tool.tokens.create(newToken())
  const generation = await tool.tokens.generation()
  assert.deepEqual(await living(tool), [{ nodeId: 'node-1', tokenGeneration: 0 }])
  await server.nodes.report({ nodeId: 'node-1', tokenGeneration: generation })
  for (const store of [tool, server]) {
    assert.deepEqual(await living(store), [{ nodeId: 'node-1', tokenGeneration: generation }])
  }
})

everyDriver('a server that signs off is no longer alive', async (database) => {
  const server = await database.open('server')
  const tool = await database.open('tool')
  await server.nodes.report({ nodeId: 'node-1', tokenGeneration: 3 })
  await server.nodes.remove('node-of-somebody-else')
  assert.equal((await living(tool)).length, 1)
  await server.nodes.remove('node-1')
  await server.nodes.remove('node-1')
  assert.deepEqual(await tool.nodes.live(), [])
})

everyDriver('a server that was killed is not among the living, nor when the next one starts', async (database, t) => {
  const child = startChild(t, 'serve', database.url, 'killed-node')
  await child.line('ready')
  const tool = await database.open('tool')
  assert.deepEqual(await living(tool), [{ nodeId: 'killed-node', tokenGeneration: 5 }])
  await child.kill()
  // A single server is told by its lock, at once. Among several, one that was killed stops giving signs of life.
  if (tool.traits.concurrentWriters) {
    const killedAt = performance.now()
    await until('the killed server is no longer counted', async () => {
      const askedAt = performance.now()
      const live = await tool.nodes.live()
      assert.ok(live.length === 0 || askedAt - killedAt <= 5000, 'counted when asked more than 5 s after the kill')
      return live.length === 0
    })
  }
  assert.deepEqual(await tool.nodes.live(), [])
  const next = await database.open('server')
  assert.deepEqual(await tool.nodes.live(), [])
  await next.nodes.report({ nodeId: 'next-node', tokenGeneration: 6 })
  assert.deepEqual(await living(tool), [{ nodeId: 'next-node', tokenGeneration: 6 }])
})

everyDriver('looking who is alive does not disturb the server', async (database) => {
  const server = await database.open('server')
  await server.nodes.report({ nodeId: 'node-1', tokenGeneration: 0 })
  const tool = await database.open('tool')
  for (let n = 0; n < 50; n++) {
    assert.equal((await living(tool)).length, 1)
    assert.equal((await living(server)).length, 1)
    await server.probe()
  }
})

everyDriver('a server that stays is alive for as long as it stays', async (database, t) => {
  const child = startChild(t, 'serve', database.url, 'steady-node')
  await child.line('ready')
  const tool = await database.open('tool')
  // Longer than one sign of life counts. A machine that stands still for seconds may make it miss one: then it is watched anew.
  let aliveSince = performance.now()
  await until('it was counted at every look for 6 s', async () => {
    const live = await tool.nodes.live()
    if (live.length === 0) aliveSince = performance.now()
    else assert.deepEqual(live, [{ nodeId: 'steady-node', tokenGeneration: 5 }])
    return performance.now() - aliveSince >= 6000
  })
})

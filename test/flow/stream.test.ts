// Following through two PostgreSQL nodes, each a process of its own: whoever is cut off and comes back to either node with
// the last id it was told has every event once, in order.

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { send } from '../support/client.ts'
import { intrayJson } from '../support/command.ts'
import { EventStream } from '../support/event-stream.ts'
import { createToken, withStore } from '../support/journal.ts'
import { Pipeline } from '../support/pipeline.ts'
import { newPostgresDatabase } from '../support/postgres/databases.ts'
import { type ServerProcess, startServer } from '../support/process.ts'
import { within } from '../support/until.ts'

const EVENTS = 10_000
const DISCONNECTS = 50
const CONNECTIONS = 4
const CHUNK = 25

async function startTwo(t: TestContext) {
  const url = await newPostgresDatabase()
  const [sender, processor, foreign] = await withStore(url, async (store) => [
    await createToken(store),
    await createToken(store, { scope: 'processor' }),
    await createToken(store, { companyId: 43 }),
  ])
  const env = { INTRAY_DATABASE_URL: url, INTRAY_LOG_LEVEL: 'error' }
  const nodes = await Promise.all([startServer(t, env), startServer(t, env)])
  return { url, sender: sender!, processor: processor!, foreign: foreign!, nodes }
}

/**
 * Sends all events through both nodes at once, with those of another tenant in between; the ids that were given. The last
 * tenth is sent when the reader has had its disconnects, so that all of them fall into the time of the appends.
 */
async function appendAll(
  t: TestContext,
  { nodes, sender, foreign }: Awaited<ReturnType<typeof startTwo>>,
  cutsDone: Promise<void>,
): Promise<number[]> {
  const ids: number[] = []
  const share = EVENTS / (nodes.length * CONNECTIONS)
  await Promise.all(
    nodes.flatMap(({ port }, node) =>
      Array.from({ length: CONNECTIONS }, async (_, connection) => {
        const [mine, others] = [await Pipeline.open(port, sender), await Pipeline.open(port, foreign)]
        t.after(() => {
          mine.close()
          others.close()
        })
        for (let at = 0; at < share; at += CHUNK) {
          if (at >= 0.9 * share) await cutsDone
          const bodies = Array.from({ length: CHUNK }, (_each, n) => `{"source_ref":"${node}:${connection}:${at + n}"}`)
          const [answers] = await Promise.all([mine.send(bodies), others.send(bodies.slice(0, 3))])
          ids.push(...answers.map(({ id }) => id))
        }
      }),
    ),
  )
  return ids.toSorted((a, b) => a - b)
}

/** Is cut off again and again, after some more events each time, and comes back to the other node. */
class CutReader {
  readonly seen: number[] = []
  disconnects = 0
  readonly #nodes: readonly ServerProcess[]
  readonly #token: string
  readonly #resumes: boolean
  #stream: EventStream | null = null
  #isOver = false

  /** One that resumes says which id it was told last; one that does not begins anew. */
  constructor(nodes: readonly ServerProcess[], token: string, resumes: boolean) {
    this.#nodes = nodes
    this.#token = token
    this.#resumes = resumes
  }

  async connect(): Promise<EventStream> {
    const told = this.#stream?.lastEventId
    const { port } = this.#nodes[this.disconnects % this.#nodes.length]!
    const options = this.#resumes && told !== undefined ? { lastEventId: told } : {}
    this.#stream = await EventStream.open(port, this.#token, options)
    // What it begins after is told first: a client that has not heard that has not begun.
    return this.#stream.until(({ lastEventId }) => lastEventId !== undefined)
  }

  /** All disconnects, and a last connection that stays. */
  async goThrough(): Promise<void> {
    while (this.disconnects < DISCONNECTS && !this.#isOver) {
      const stream = this.#stream!
      const goal = 40 + ((this.disconnects * 37) % 80)
      await stream.until(({ ids }) => ids.length >= goal || this.#isOver)
      stream.close()
      await stream.closed
      this.seen.push(...stream.ids)
      if (this.#isOver) return
      this.disconnects += 1
      await this.connect()
    }
  }

  /** Takes what it has, and reads no more. */
  abandon(): void {
    this.#isOver = true
    this.#stream!.wake()
  }

  /** Reads on to this id, and closes. */
  async finish(lastId: number): Promise<void> {
    const stream = this.#stream!
    await stream.until(({ ids }) => (ids.at(-1) ?? 0) >= lastId)
    stream.close()
    this.seen.push(...stream.ids)
  }
}

test('a reader that is cut off 50 times during 10,000 appends on two nodes gets every id once, in order', async (t) => {
  const two = await startTwo(t)
  const reader = new CutReader(two.nodes, two.processor, true)
  const control = new CutReader(two.nodes, two.processor, false)
  const steady = await EventStream.open(two.nodes[0]!.port, two.processor)
  t.after(() => steady.close())
  await Promise.all([reader.connect(), control.connect()])
  const cuts = reader.goThrough()
  const controlCuts = control.goThrough()
  const ids = await within('all answers', appendAll(t, two, cuts))
  const lastId = ids.at(-1)!
  const ends = [reader.finish(lastId), steady.until(({ ids: told }) => told.at(-1) === lastId)]
  await within('the readers', Promise.all(ends))
  // It may have begun anew after the last one, and would wait for ever.
  control.abandon()
  await within('the control', controlCuts)
  const missed = ids.length - new Set(control.seen).size
  t.diagnostic(
    `${reader.disconnects} disconnects: ${reader.seen.length} of ${ids.length} events, ` +
      `${reader.seen.length - new Set(reader.seen).size} twice; control: ${control.disconnects} disconnects, ${missed} missed`,
  )
  assert.deepEqual([ids.length, new Set(ids).size, reader.disconnects], [EVENTS, EVENTS, DISCONNECTS])
  assert.deepEqual(reader.seen, ids)
  assert.deepEqual(steady.ids, ids)
  assert.ok(missed > 0, 'the control missed nothing, so the test shows nothing')
})

test('a token disabled by the command has no stream left on either node when the command returns', async (t) => {
  const { url, nodes, processor } = await startTwo(t)
  const streams = await Promise.all(nodes.map(({ port }) => EventStream.open(port, processor)))
  t.after(() => {
    for (const stream of streams) stream.close()
  })
  await intrayJson(['token', 'disable', processor.split('_')[1]!], { INTRAY_DATABASE_URL: url })
  let ends: readonly string[] = []
  void Promise.all(streams.map(({ closed }) => closed)).then((all) => (ends = all))
  // What was under way has arrived when a node has answered a few times, on whatever machine: nobody waited for a look at tokens.
  for (let n = 0; n < 20; n++) await Promise.all(nodes.map(({ port }) => send(port, { path: '/livez' })))
  assert.deepEqual(ends, ['end', 'end'])
  for (const stream of streams) assert.equal(stream.blocks.at(-1)?.comment, 'token_disabled')
})

test('a node that stops ends its streams, and their reader goes on at the other', async (t) => {
  const { nodes, sender, processor } = await startTwo(t)
  const stream = await EventStream.open(nodes[0]!.port, processor, { after: 0 })
  const connection = await Pipeline.open(nodes[1]!.port, sender)
  t.after(() => connection.close())
  const ids = (await connection.send(Array.from({ length: 20 }, (_, n) => `{"n":${n}}`))).map(({ id }) => id)
  await within(
    'all of them, through the node that did not store them',
    stream.until(({ ids: told }) => told.length === ids.length),
  )
  nodes[0]!.child.kill('SIGTERM')
  assert.equal(await within('the end of the stream', stream.closed), 'end')
  assert.equal(await within('the end of the node', nodes[0]!.exited), 0)
  const [more] = await connection.send(['{"after":"the stop"}'])
  const again = await EventStream.open(nodes[1]!.port, processor, { lastEventId: stream.lastEventId! })
  t.after(() => again.close())
  await within(
    'what came since',
    again.until(({ ids: told }) => told.length > 0),
  )
  assert.deepEqual([stream.ids.toSorted((a, b) => a - b), again.ids], [ids.toSorted((a, b) => a - b), [more!.id]])
})

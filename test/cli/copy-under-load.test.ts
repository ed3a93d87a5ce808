// `./intray copy` of a database whose senders, processors and operators go on: nothing is lost, nothing is there twice, and what
// changed after it was copied is copied again.

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { Cell } from '../../src/store/contract/copy.ts'
import { openCopySide } from '../../src/store/open.ts'
import { item } from '../store/rows.ts'
import { send, type TestAnswer } from '../support/client.ts'
import { copyWhile } from '../support/copy-command.ts'
import { drivers } from '../support/drivers.ts'
import { createToken, untilIndexed, withStore } from '../support/journal.ts'
import { post } from '../support/load.ts'
import { type ServerProcess, startServer } from '../support/process.ts'
import { until } from '../support/until.ts'

const STORED = 3000
/** Bounds of each part of the load: it ends here, or with the first answer that is not 200. */
const MOST_MESSAGES = 1500
const MOST_CLAIMS = 300
const SENDERS = 2

interface Tokens {
  readonly sender: string
  readonly processor: string
  readonly admin: string
}

interface Done {
  /** source_ref → id */
  readonly acknowledged: Map<string, number>
  readonly acked: Set<number>
  readonly failed: Set<number>
  longestMs: number
}

/** One message after the other. Every tenth is one of the stored again, half of these with other bytes. */
async function sendSome(server: ServerProcess, { sender }: Tokens, name: string, done: Done): Promise<void> {
  for (let n = 0; n < MOST_MESSAGES / SENDERS; n++) {
    const isAgain = n % 10 === 9
    const ref = isAgain ? `stored ${n}` : `${name} ${n}`
    const body = JSON.stringify({ source_ref: ref, channel_ref: `c${n % 7}`, n: isAgain && n % 20 === 9 ? name : 0 })
    const startedAt = performance.now()
    const answer = await post(server.port, sender, body)
    done.longestMs = Math.max(done.longestMs, performance.now() - startedAt)
    if (answer.status !== 200) return
    done.acknowledged.set(ref, answer.json!.id as number)
  }
}

/** Claims, acks half of the events and gives back the other half with an error. */
async function processSome(server: ServerProcess, { processor }: Tokens, done: Done): Promise<void> {
  for (let n = 0; n < MOST_CLAIMS; n++) {
    const claimed = await call(server, processor, 'POST', '/v1/inbox/claims', { limit: 4, ordered: false })
    if (claimed.status !== 200) return
    const events = claimed.json!.events as { id: number; lease_id: string }[]
    const items = events.map(({ id, lease_id }) => ({ id, lease_id }))
    const [acks, releases] = [items.slice(0, 2), items.slice(2)]
    for (const [path, some, ids] of [
      ['ack', acks, done.acked],
      ['release', releases, done.failed],
    ] as const) {
      if (some.length === 0) continue
      const error = path === 'release' ? { error: 'not now' } : {}
      const answer = await call(server, processor, 'POST', `/v1/inbox/claims/${path}`, { events: some, ...error })
      if (answer.status !== 200) return
      for (const { id } of some) ids.add(id)
    }
  }
}

function call(server: ServerProcess, token: string, method: string, path: string, body?: unknown): Promise<TestAnswer> {
  return send(server.port, {
    method,
    path,
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
}

/** Every row of every table, as text. */
async function allRows(url: string): Promise<Record<string, string[]>> {
  const side = await openCopySide(url, { mustExist: true })
  try {
    const found: Record<string, string[]> = {}
    for (const table of side.tables) {
      const rows: string[] = []
      const columns = Object.keys(table.columns)
      for (let after: Cell[] | null = null; ; ) {
        const page = await side.read(table, after)
        const last = page.at(-1)
        if (!last) break
        rows.push(...page.map((row) => JSON.stringify(row.map(textOf))))
        after = table.key.map((column) => last[columns.indexOf(column)]!)
      }
      found[table.name] = rows
    }
    return found
  } finally {
    await side.close()
  }
}

const textOf = (cell: Cell): unknown => (cell instanceof Uint8Array ? Buffer.from(cell).toString('hex') : cell)

for (const [from, to] of [drivers, drivers.toReversed()]) {
  test(`${from!.name} to ${to!.name}: under load nothing is lost, nothing is twice, and every change is copied`, async (t: TestContext) => {
    const source = await from!.newDatabase()
    const tokens = await withStore(source, async (store): Promise<Tokens> => {
      for (let n = 0; n < STORED; n += 200) {
        const some = Array.from({ length: 200 }, (_, i) => `stored ${n + i}`)
        await store.journal.append(
          some.map((ref) =>
            item({ sourceRef: ref, channelRef: `c${n % 7}`, body: { source_ref: ref, text: 'x'.repeat(300) } }),
          ),
        )
      }
      return {
        sender: await createToken(store),
        processor: await createToken(store, { scope: 'processor' }),
        admin: await createToken(store, { scope: 'admin' }),
      }
    })
    const server = await startServer(t, { INTRAY_DATABASE_URL: source })
    const target = await to!.newDatabase()
    const done: Done = { acknowledged: new Map(), acked: new Set(), failed: new Set(), longestMs: 0 }
    let erased = 0
    const isLoaded = () => done.acknowledged.size > 0 && done.acked.size > 0 && done.failed.size > 0 && erased > 0
    const eraseSome = async () => {
      for (const id of [5, 500, STORED - 5]) {
        const answer = await call(server, tokens.admin, 'DELETE', `/v1/inbox/events/${id}`)
        if (answer.status !== 200) return
        erased += 1
      }
      // A refusal, and a token that is used for the first time.
      await post(server.port, tokens.sender, '{"source_ref":7.5}')
    }
    // Otherwise claims could come to their bound before there is anything to claim.
    await untilIndexed(source)
    const run = await copyWhile(source, target, {
      at: 'copy: ',
      run: async (goOn) => {
        const load = Promise.all([
          ...Array.from({ length: SENDERS }, (_, n) => sendSome(server, tokens, `sender ${n}`, done)),
          processSome(server, tokens, done),
          eraseSome(),
        ])
        await until('there is load of each kind', isLoaded)
        goOn()
        await load
      },
    })
    assert.equal(run.code, 0, run.said)
    assert.equal((await post(server.port, tokens.sender, '{"source_ref":"late"}')).status, 503)
    server.child.kill('SIGTERM')
    await server.exited

    assert.ok(isLoaded(), 'no load')
    const [there, here] = [await allRows(source), await allRows(target)]
    for (const table of Object.keys(there)) assert.deepEqual(here[table], there[table], table)
    await withStore(target, async (store) => {
      for (const [ref, id] of done.acknowledged) {
        const event = (await store.events.find(id))!
        assert.ok(event.sourceRef === ref || event.erasedAt !== null, `${ref} is ${id}`)
      }
      assert.equal(here.dedupe!.length, here.events!.filter((row) => row.includes('"event"')).length)
      assert.equal((await store.erasures.log(0, 10)).length, erased)
      assert.equal((await store.index.progress()).lag, 0)
    })
    t.diagnostic(
      `${run.report.rounds} rounds; ${done.acknowledged.size} acknowledged, ${done.acked.size} acked, ${done.failed.size} given back and ` +
        `${erased} erased meanwhile; writers waited for ${run.report.paused_ms} ms, the slowest answer took ${Math.round(done.longestMs)} ms`,
    )
  })
}

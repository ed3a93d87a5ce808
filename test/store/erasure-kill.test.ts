// Erasures that are killed again and again end when they are repeated: then no file of the database, no row of any table and no
// answer holds a piece of what was erased. What others sent is all there.

import assert from 'node:assert/strict'
import { hash, randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { TestContext } from 'node:test'
import { createPromote } from '../../src/intake/promote.ts'
import { newUuid } from '../../src/runtime/id.ts'
import type { Store } from '../../src/store/contract/store.ts'
import { withClient } from '../support/postgres/databases.ts'
import { sqlitePath } from './back-door-sqlite.ts'
import { startChild } from './child.ts'
import { idOf, item, type ItemFields, NOON, refusal, TENANT } from './rows.ts'
import { drawSeed, random } from './seed.ts'
import { everyDriver, indexAll, roles, type TestDatabase } from './suite.ts'

const MESSAGES = 20
const KILLS = 20

everyDriver(
  'an erasure that is killed at any point ends when it is repeated, and leaves nothing',
  async (database, t) => {
    const dice = random(drawSeed(t))
    const address = `gone.${secret()}@example.org`
    const store = await database.open('tool')
    const erased = new Secrets()
    const kept = new Secrets()
    await fill(store, (n) => (n % 4 === 3 ? kept : erased), address)
    erased.add(address.slice(5, -12))
    await store.close()
    const found = async (secrets: Secrets) => {
      const places = await placesOf(database)
      return secrets.all.filter((piece) => places.some((place) => place.includes(piece)))
    }
    assert.equal((await found(erased)).length, erased.all.length, 'the control: every piece is there before')

    let calls = 0
    for (let n = 0; ; n++) {
      const mercy = n < KILLS ? dice.below(7) : Number.POSITIVE_INFINITY
      const { lines, kills } = await eraseAndKill(t, database, dice.pick(roles), address, mercy)
      calls += lines.length
      if (kills === 0) break
    }
    t.diagnostic(`${calls} calls in ${KILLS} killed runs and one whole one`)
    assert.ok(calls > MESSAGES)
    assert.deepEqual(await found(erased), [])
    assert.equal((await found(kept)).length, kept.all.length, 'what others sent is there')

    const after = await database.open('server')
    assert.equal(await after.erasures.isPending(TENANT), false)
    await after.index.requestRebuild()
    await indexAll(after)
    while ((await after.erasures.purge()).more);
    await after.close()
    assert.deepEqual(await found(erased), [], 'after a rebuild')
  },
)

/** Random text, and where it was put: nothing else is equal to any of it. */
class Secrets {
  readonly all: (string | Buffer)[] = []
  readonly #digests: Buffer[] = []

  make(): string {
    const text = secret()
    this.add(text)
    return text
  }

  add(text: string): void {
    // Sorted terms share their beginnings, and only the rest of each is written.
    this.all.push(text.slice(-12))
  }

  addDigest(payload: Uint8Array): void {
    this.#digests.push(hash('sha256', payload, 'buffer'))
    this.all.push(this.#digests.at(-1)!)
  }
}

const secret = (): string => `k${randomBytes(10).toString('hex')}`

/** One message with everything that a sender can say, twice revised, once promoted, refused before, and failed to process. */
async function fill(store: Store, ofMessage: (n: number) => Secrets, address: string): Promise<void> {
  const clock = { now: () => NOON }
  const submit = async (one: Parameters<typeof store.journal.append>[0][number]) => {
    const [outcome] = await store.journal.append([one])
    return { outcome: 'stored' as const, id: idOf(outcome) }
  }
  const promote = createPromote({ events: store.events, erasures: store.erasures, clock, submit })
  const ids: number[] = []
  for (let n = 0; n < MESSAGES; n++) {
    const secrets = ofMessage(n)
    const email = n % 4 === 3 ? 'kept@example.org' : address
    const ref = secrets.make()
    // Two messages of each conversation.
    const fields = messageOf(secrets, ref, email, `channel ${Math.floor(n / 4)} ${n % 4 === 3 ? 'kept' : 'gone'}`)
    ids.push(idOf((await store.journal.append([fields]))[0]))
    await store.journal.append([messageOf(secrets, ref, email, fields.channelRef!)])
    const body = Buffer.from(`{"source_ref":"${ref}","text":"${secrets.make()}" broken`)
    await store.refusals.add([refusal({ body, receivedAt: Date.now() })], { maxCount: 99 })
  }
  for (const id of ids) {
    const [revision] = await store.events.revisions(id, 0, 1)
    const principal = { ...TENANT, keyId: 'AAAAAAAAAA', scope: 'cf' }
    await promote({ principal, revisionId: revision!.id, requestId: newUuid() })
  }
  await indexAll(store)
  const queue = { tenant: TENANT, subscription: 'default' }
  const lease = { leaseId: newUuid(), leaseExpiresAt: NOON + 9, keyId: 'PPPPPPPPPP', now: NOON }
  await store.processing.claim({
    ...{ ...queue, ...lease, limit: 100, maxBytes: 1 << 24, ordered: false, channelRef: null, maxAttempts: 3 },
  })
  const items = ids.map((id, n) => ({ id, leaseId: lease.leaseId, delayMs: 0, error: ofMessage(n).make() }))
  await store.processing.release({ ...queue, items, maxAttempts: 3, keyId: 'P', jitter: 0, now: NOON + 1 })
}

function messageOf(secrets: Secrets, ref: string, email: string, channelRef: string) {
  const text = `${secrets.make()} ${'more '.repeat(600)} ${secrets.make()}`
  const contact = { name: secrets.make(), email }
  const fields: ItemFields = {
    ...{ sourceRef: ref, channelRef, body: { source_ref: ref, channel_ref: channelRef, contact, message: { text } } },
    ...{ userAgent: secrets.make(), traceparent: secrets.make(), remoteAddr: secrets.make() },
    contentType: `application/json; x=${secrets.make()}`,
  }
  const made = item(fields)
  secrets.addDigest(made.payload)
  return made
}

async function eraseAndKill(t: TestContext, { url }: TestDatabase, role: string, address: string, mercy: number) {
  const child = startChild(t, 'erase', url, role, address, String(mercy))
  let calls = 0
  child.onLine((line) => {
    if (line !== 'done' && calls++ === mercy) child.process.kill('SIGKILL')
  })
  const { code, signal } = await child.exited
  if (!child.lines.includes('done')) assert.equal(signal, 'SIGKILL', `it ended by itself with ${code}`)
  return { lines: child.lines, kills: child.lines.includes('done') ? 0 : 1 }
}

/** Everything that is stored: the files of the folder, or every row as text, in which bytes are hexadecimal. */
async function placesOf({ url, driver }: TestDatabase): Promise<Buffer[]> {
  if (driver.name === 'sqlite') {
    const folder = dirname(sqlitePath(url))
    return readdirSync(folder).map((name) => readFileSync(join(folder, name)))
  }
  return withClient(url, async (client) => {
    const { rows } = await client.query<{ name: string }>(
      "SELECT relname AS name FROM pg_class WHERE relnamespace = 'intray'::regnamespace AND relkind = 'r'",
    )
    const places: Buffer[] = []
    for (const { name } of rows) {
      const { rows: texts } = await client.query<{ text: string }>(`SELECT t::text AS text FROM intray.${name} t`)
      for (const { text } of texts) places.push(Buffer.from(text), ...bytesIn(text))
    }
    return places
  })
}

function bytesIn(row: string): Buffer[] {
  return Array.from(row.matchAll(/\\x([0-9a-f]+)/g), ([, hex]) => Buffer.from(hex!, 'hex'))
}

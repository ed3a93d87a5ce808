// One constraint decides: the same refs sent at once by several processes, in opposite orders, some of them killed and started
// again, are one event each, and every answer names it. The control takes the constraint away.

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { seededRandom } from '../../prove/random.ts'
import { type Driver, drivers } from '../support/drivers.ts'
import { backDoorOf } from './back-door.ts'
import { type Child, startChild } from './child.ts'
import { newDatabase, type Role } from './suite.ts'

const REFS = 5000
const KILLS_EACH = 4
/** Several batches that are under way together: see child-main.ts. */
const REFS_AT_ONCE = 64
const SEED = Number(process.env.TEST_SEED ?? Date.now() % 2 ** 31)

interface Sender {
  readonly role: Role
  readonly order: 'up' | 'down'
}

/** Any number of nodes may be servers on PostgreSQL; on SQLite one is, beside commands. */
const SENDERS: Record<string, readonly Sender[]> = {
  postgres: [
    { role: 'server', order: 'up' },
    { role: 'server', order: 'down' },
    { role: 'tool', order: 'up' },
  ],
  sqlite: [
    { role: 'server', order: 'up' },
    { role: 'tool', order: 'down' },
    { role: 'tool', order: 'up' },
  ],
}

/** The ids that each ref was answered with. */
class Answers {
  readonly #ids = new Map<string, Set<string>>()
  count = 0

  note(line: string): void {
    const [what, ref, id] = line.split(' ')
    if (what !== 'answer') return
    this.count += 1
    const ids = this.#ids.get(ref!) ?? new Set()
    this.#ids.set(ref!, ids.add(id!))
  }

  get refs(): number {
    return this.#ids.size
  }

  /** Refs that were answered with more than one id. */
  get split(): string[] {
    return Array.from(this.#ids).flatMap(([ref, ids]) => (ids.size > 1 ? [ref] : []))
  }
}

/** Sends all refs, is killed at random places, and goes on where its answers ended. */
async function sendAll(
  start: (from: number) => Child,
  first: Child,
  killAt: readonly number[],
  answers: Answers,
): Promise<{ kills: number; inFlight: number }> {
  let [sent, kills, inFlight] = [0, 0, 0]
  for (let child = first; ; child = start(sent)) {
    if (child !== first) await child.line('waiting')
    const limit = killAt[kills]
    let begun = sent
    const reached = new Promise<void>((resolve) => {
      child.onLine((line) => {
        answers.note(line)
        if (line === 'sending') begun += REFS_AT_ONCE
        if (line.startsWith('answer')) sent += 1
        if (limit !== undefined && sent >= limit) resolve()
      })
    })
    child.go()
    if (limit === undefined) {
      await child.line('done')
      assert.equal((await child.exited).code, 0)
      return { kills, inFlight }
    }
    await Promise.race([reached, child.exited])
    await child.kill()
    kills += 1
    // What was under way is sent again, as a whole: some of it may be stored.
    if (begun > sent) inFlight += 1
    sent -= sent % REFS_AT_ONCE
  }
}

async function race(t: TestContext, driver: Driver, url: string, killsEach: number) {
  const random = seededRandom(SEED)
  const answers = new Answers()
  const started = SENDERS[driver.name]!.map(({ role, order }) => {
    const start = (from: number) => startChild(t, 'send-refs', url, role, order, String(REFS), String(from))
    const killAt = Array.from({ length: killsEach }, () => 1 + random.below(REFS - 200)).sort((a, b) => a - b)
    return { start, first: start(0), killAt }
  })
  for (const { first } of started) await first.line('waiting')
  const ended = await Promise.all(started.map(({ start, first, killAt }) => sendAll(start, first, killAt, answers)))
  const kills = ended.reduce((sum, one) => sum + one.kills, 0)
  const inFlight = ended.reduce((sum, one) => sum + one.inFlight, 0)
  const counts = await backDoorOf(driver).countRefs(url)
  t.diagnostic(
    `seed ${SEED}: ${answers.count} answers for ${answers.refs} refs, ${kills} kills (${inFlight} with batches under way); ` +
      `${answers.split.length} refs with two ids, ${counts.twice} refs with two events`,
  )
  return { answers, counts, kills, inFlight }
}

for (const driver of drivers) {
  test(`${driver.name}: refs sent at once by three processes that are killed are one event each`, async (t) => {
    const { url } = await newDatabase(t, driver)
    const { answers, counts, kills, inFlight } = await race(t, driver, url, KILLS_EACH)
    assert.equal(kills, KILLS_EACH * 3)
    assert.ok(inFlight > 0, 'kills fell on batches under way')
    assert.equal(answers.refs, REFS)
    assert.ok(answers.count >= 3 * REFS, 'each sender was answered for each ref')
    assert.deepEqual(answers.split, [], 'every answer for a ref names one event')
    assert.deepEqual(counts, { events: REFS, refs: REFS, twice: 0, revisions: 0 })
  })

  test(`${driver.name}: the control: without the key of dedupe there are two events for a ref`, async (t) => {
    const { url, open } = await newDatabase(t, driver)
    await (await open('tool')).close()
    await backDoorOf(driver).dropDedupeKey(url)
    const { answers, counts } = await race(t, driver, url, 0)
    assert.equal(answers.refs, REFS)
    assert.ok(answers.split.length > 0)
    assert.ok(counts.twice > 0)
  })
}

// The promise under the hardest stop there is: SIGKILL while senders are sending, again and again on one database.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { conversationCounts, createToken, untilIndexed, withStore } from '../support/journal.ts'
import { audit, faultsOf, Ledger, Load, NOTHING_WRONG, post, seededRandom } from '../support/load.ts'
import { startServer } from '../support/process.ts'
import { tempFolder } from '../support/temp.ts'
import { within } from '../support/until.ts'

const KILLS = 20
const CONNECTIONS = 12
const SEED = 20261115
const UNSAFE_SERVER = fileURLToPath(new URL('../support/unsafe-server.ts', import.meta.url))

interface Subject {
  readonly databaseUrl: string
  readonly token: string
  readonly ledger: Ledger
  readonly random: (below: number) => number
  /** Starts a server; the launcher unless told otherwise. */
  readonly command?: readonly string[]
}

async function newSubject(command?: readonly string[]): Promise<Subject> {
  const databaseUrl = `sqlite:${join(tempFolder('kill'), 'intray.db')}`
  const token = await withStore(databaseUrl, (store) => createToken(store))
  const ledger = new Ledger(SEED)
  return { databaseUrl, token, ledger, random: seededRandom(SEED), ...(command ? { command } : {}) }
}

/** Starts, loads, kills at a random number of acknowledgements. Returns how many requests were in flight at the kill. */
async function killOnce(t: TestContext, { databaseUrl, token, ledger, random, command }: Subject): Promise<number> {
  const server = await startServer(t, { INTRAY_DATABASE_URL: databaseUrl }, command)
  const killAt = 10 + random(60)
  // Some turns of the event loop later, so that not every kill falls on the same point of a commit.
  let turns = random(12)
  let inFlight = 0
  const kill = () => {
    if (turns-- > 0) {
      setImmediate(kill)
      return
    }
    inFlight = load.inFlight
    server.child.kill('SIGKILL')
  }
  const onAcknowledged = (count: number) => {
    if (count === killAt) kill()
  }
  const load = new Load({ port: server.port, token, ledger, connections: CONNECTIONS, onAcknowledged })
  await within('all senders to be cut off by the kill', load.finished)
  await within('the killed server to be gone', server.exited)
  assert.equal(server.child.signalCode, 'SIGKILL', `the server was killed, and did not end before: ${server.stderr()}`)
  return inFlight
}

test('a server killed 20 times under load loses, doubles and alters nothing it acknowledged', async (t) => {
  const subject = await newSubject()
  const { databaseUrl, token, ledger } = subject
  let killsInFlight = 0
  for (let kill = 0; kill < KILLS; kill += 1) {
    if ((await killOnce(t, subject)) > 0) killsInFlight += 1
  }
  const server = await startServer(t, { INTRAY_DATABASE_URL: databaseUrl })
  const found = await audit(databaseUrl, ledger)
  const { unknown } = ledger
  t.diagnostic(
    `${KILLS} kills, ${killsInFlight} with requests in flight; ${ledger.sent.size} sent, ${found.acknowledged} acknowledged, ` +
      `${found.lost.length} lost, ${found.twice.length} twice, ${found.altered.length} altered; ${unknown.length} unknown, ` +
      `${found.storedUnknown.length} of them stored`,
  )
  assert.deepEqual(faultsOf(found), NOTHING_WRONG)
  assert.ok(killsInFlight > 0, 'no kill fell on a request in flight')
  assert.ok(found.acknowledged > 300, `only ${found.acknowledged} messages were acknowledged`)
  assert.ok(unknown.length > 0, 'no kill left a sender without an answer')
  assert.deepEqual(ledger.refused, [], 'every answer was an acknowledgement')

  const wasStored = new Set(found.storedUnknown)
  for (const ref of unknown) {
    const answer = await post(server.port, token, ledger.sent.get(ref)!)
    assert.equal(answer.status, 200, answer.text)
    assert.equal(answer.json?.duplicate, wasStored.has(ref) ? true : undefined, ref)
    assert.equal(answer.json?.conflict, undefined, ref)
    ledger.acknowledged.set(ref, Number(answer.json?.id))
  }
  const after = await audit(databaseUrl, ledger)
  assert.deepEqual(faultsOf(after), NOTHING_WRONG, 'what was unknown is there exactly once after it was sent again')
  assert.equal(after.acknowledged, ledger.sent.size)

  await untilIndexed(databaseUrl)
  const { indexed, rows } = await conversationCounts(databaseUrl)
  assert.deepEqual(indexed, rows, 'the indexer, killed as often, counted every event once')
})

test('the same audit finds the losses of a server that acknowledges before the commit', async (t) => {
  const subject = await newSubject([process.execPath, UNSAFE_SERVER])
  let kills = 0
  let lost = 0
  while (lost === 0 && kills < KILLS) {
    kills += 1
    await killOnce(t, subject)
    lost = (await audit(subject.databaseUrl, subject.ledger)).lost.length
  }
  t.diagnostic(`${lost} of ${subject.ledger.acknowledged.size} acknowledged messages lost after ${kills} kill(s)`)
  assert.ok(lost > 0, `the control lost nothing in ${kills} kills, so the audit shows nothing`)
})

// The promise when the database server itself dies: a primary is killed under load and never comes back, its standby is
// promoted, the same nodes carry on. What was acknowledged is on the standby.
//
// FAILOVER_ROUNDS=10 runs the failover that often, each with servers of its own.

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { connect, createDatabase, withClient } from '../support/postgres/databases.ts'
import { readCounts, readRows } from '../support/postgres/rows.ts'
import { cutOff, type Pair, promote, startPair } from '../support/postgres/standby.ts'
import { createToken, untilIndexed, withStore } from '../support/journal.ts'
import { auditRows, faultsOf, Ledger, NOTHING_WRONG, post } from '../support/load.ts'
import { type ServerProcess, startServer } from '../support/process.ts'
import { Senders } from '../support/senders.ts'
import { until, within } from '../support/until.ts'

const SEED = 20261115
const ROUNDS = Number(process.env.FAILOVER_ROUNDS ?? 1)
const BEFORE = 400
const AFTER = 300

interface Subject {
  readonly pair: Pair
  readonly database: string
  readonly token: string
  readonly nodes: readonly ServerProcess[]
}

/** Two nodes that know both servers. The second lists the standby first: it has to pass it over. */
async function newSubject(t: TestContext, synchronous: boolean): Promise<Subject> {
  const pair = await startPair({ synchronous })
  t.after(() => Promise.all([pair.primary.kill(), pair.standby.kill()]))
  const url = new URL(await createDatabase(pair.primary.url('postgres')))
  const database = url.pathname.slice(1)
  const token = await withStore(pair.url(database), (store) => createToken(store))
  const start = (name: string, standbyFirst: boolean) =>
    startServer(t, {
      INTRAY_DATABASE_URL: `${pair.url(database, standbyFirst)}?application_name=${name}`,
      INTRAY_LOG_LEVEL: 'error',
    })
  const nodes = await Promise.all([start('node-a', false), start('node-b', true)])
  return { pair, database, token, nodes }
}

function startSenders(t: TestContext, { nodes, token }: Subject, ledger: Ledger): Senders {
  const senders = new Senders({ ports: nodes.map(({ port }) => port), token, ledger, each: 8 })
  t.after(() => senders.abandon())
  return senders
}

async function failOver(t: TestContext, round: number): Promise<void> {
  const subject = await newSubject(t, true)
  const { pair, database, nodes } = subject
  const ledger = new Ledger(SEED + round, 2000)
  const senders = startSenders(t, subject, ledger)
  await senders.more(BEFORE)
  const { inFlight } = senders
  await pair.primary.crash()
  const before = senders.acknowledged
  await promote(pair)
  await senders.more(AFTER)
  await senders.stop()

  const url = pair.standby.url(database)
  const found = auditRows(await readRows(url), ledger)
  const statuses = new Set(ledger.refused.map(({ answer }) => answer.status))
  t.diagnostic(
    `1 kill with ${inFlight} requests in flight; ${before} acknowledged before it, ${found.acknowledged - before} after the promotion; ` +
      `${ledger.refused.length} × 503, ${ledger.failed.length} cut off; ${found.lost.length} lost, ${found.twice.length} twice, ${found.altered.length} altered`,
  )
  assert.ok(inFlight > 0, 'the kill fell on requests in flight')
  assert.deepEqual(faultsOf(found), NOTHING_WRONG)
  assert.equal(found.acknowledged, ledger.sent.size, 'every message was acknowledged in the end')
  assert.ok([...statuses].every((status) => status === 503))
  assert.deepEqual(ledger.failed, [], 'no node fell over')
  assert.deepEqual(
    nodes.map(({ child }) => child.exitCode),
    [null, null],
    'the same processes carried on',
  )
  await untilIndexed(url)
  const { indexed, rows } = await readCounts(url)
  assert.deepEqual(indexed, rows)
}

for (let round = 1; round <= ROUNDS; round += 1) {
  test(`the primary is killed under load and its standby promoted: nothing acknowledged is lost, nothing is stored twice (${round})`, (t) =>
    failOver(t, round))
}

test('the same audit finds the losses when the primary does not wait for its standby', async (t) => {
  const subject = await newSubject(t, false)
  const { pair, database } = subject
  const ledger = new Ledger(SEED, 2000)
  const senders = startSenders(t, subject, ledger)
  await senders.more(100)
  // The network between them fails a moment before the primary does.
  await cutOff(pair)
  const before = senders.acknowledged
  await senders.more(100)
  await pair.primary.crash()
  const since = senders.acknowledged - before
  // Tries that are under way end when there is a primary again.
  const abandoned = senders.abandon()
  await promote(pair)
  await abandoned
  const { lost, acknowledged } = auditRows(await readRows(pair.standby.url(database)), ledger)
  t.diagnostic(`1 kill; ${since} acknowledged since the standby was cut off; ${lost.length} of ${acknowledged} lost`)
  assert.ok(lost.length >= 100, `the control lost ${lost.length}, so the audit shows nothing`)
})

const WAITING = `SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name = $1`
/** As many as a node has under way at once: each is a batch of its own, and none waits for another. */
const EACH = 3

/** Ends whatever wait for the standby it sees, again and again, until it is told to stop. Returns how many. */
async function endWaits(
  { pair, database }: Subject,
  name: string,
  how: 'pg_cancel_backend' | 'pg_terminate_backend',
  done: Promise<unknown>,
): Promise<number> {
  let isDone = false
  let ended = 0
  void done.then(() => (isDone = true))
  await withClient(pair.primary.url(database), (client) =>
    until('all is answered', async () => {
      const { rows } = await client.query(`SELECT ${how}(pid) AS sent FROM (${WAITING}) w`, [name])
      ended += rows.filter(({ sent }) => sent).length
      return isDone
    }),
  )
  return ended
}

test('a wait for the standby that is cancelled or terminated is no acknowledgement, although the server calls it a commit', async (t) => {
  const subject = await newSubject(t, true)
  const { pair, database, token, nodes } = subject
  await withClient(pair.primary.url(database), (client) => client.query('CREATE TABLE control (n int)'))
  await cutOff(pair)

  // The control: a client that does as the server says.
  const naive = await connect(pair.primary.url(`${database}?application_name=naive`))
  const warnings: string[] = []
  naive.on('notice', ({ code }) => warnings.push(code ?? ''))
  const committed = naive.query('INSERT INTO control VALUES (1)')
  const cancelled = await endWaits(subject, 'naive', 'pg_cancel_backend', committed)
  assert.equal((await committed).command, 'INSERT', 'it was told that its row is stored')
  assert.deepEqual(warnings, ['01000'])
  await naive.end()

  const sendTo = (n: number) =>
    Promise.all(
      Array.from({ length: EACH }, (_, k) =>
        post(nodes[n]!.port, token, `{"source_ref":"wait:${n}:${k}","channel_ref":"w"}`),
      ),
    )
  const toA = sendTo(0)
  const toB = sendTo(1)
  const [byCancel, byTermination] = await Promise.all([
    endWaits(subject, 'node-a', 'pg_cancel_backend', toA),
    endWaits(subject, 'node-b', 'pg_terminate_backend', toB),
  ])
  const answers = [...(await toA), ...(await toB)]
  const onPrimary = (await readRows(pair.primary.url(database))).length
  const statuses = answers.map(({ status, json }) => `${status} ${String(json?.error)} ${String(json?.stored)}`)
  assert.deepEqual([...new Set(statuses)], ['503 storage_unavailable unknown'])
  assert.equal(onPrimary, 2 * EACH, 'all were committed there, and could be read')

  await pair.primary.crash()
  await promote(pair)
  const left = await withClient(pair.standby.url(database), (client) => client.query('SELECT n FROM control'))
  assert.deepEqual(left.rows, [], 'what the naive client was told is stored is gone')
  assert.equal((await readRows(pair.standby.url(database))).length, 0)
  for (const n of [0, 1]) {
    await until('the node reaches the new primary', async () => {
      const answer = await post(nodes[n]!.port, token, '{"source_ref":"first"}')
      return answer.status === 200
    })
    const again = await within('the answers to the re-sends', sendTo(n))
    assert.deepEqual(
      new Set(again.map(({ status, json }) => `${status} ${String(json?.duplicate)}`)),
      new Set(['200 undefined']),
    )
  }
  t.diagnostic(
    `waits cancelled: ${cancelled} of the control, ${byCancel} of one node; terminated: ${byTermination} of the other; ` +
      `${answers.length} × 503, ${onPrimary} committed on the primary, 0 on the promoted standby, all stored once when sent again`,
  )
  assert.ok(byCancel > 0 && byTermination > 0)
})

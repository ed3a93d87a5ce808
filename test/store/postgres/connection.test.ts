// Statements that travel together: what is told when one of them fails, and what stays of it.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import test, { type TestContext } from 'node:test'
import type { StoreFailure } from '../../../src/store/contract/failure.ts'
import { parseAddress } from '../../../src/store/postgres/connection/address.ts'
import { BindMessage } from '../../../src/store/postgres/connection/bind-message.ts'
import { Connection, type Statement } from '../../../src/store/postgres/connection/connection.ts'
import { sqlState } from '../../../src/store/postgres/connection/failure.ts'
import { newPostgresDatabase } from '../../support/postgres/databases.ts'
import { within } from '../../support/until.ts'

const DIVIDE = 'SELECT 1 / (SELECT 0)'
const DIVISION_BY_ZERO = '22012'

async function setUp(t: TestContext): Promise<Connection> {
  const connection = await Connection.open(parseAddress(await newPostgresDatabase()).hosts[0]!)
  t.after(() => connection.close())
  await connection.script('CREATE TABLE kept (n integer)')
  return connection
}

const kept = async (connection: Connection): Promise<number[]> =>
  (await connection.query<{ n: number }>('SELECT n FROM kept ORDER BY n')).map(({ n }) => n)

async function stateOf(work: Promise<unknown>): Promise<string | null> {
  const failure = await work.then(
    () => assert.fail('it did not fail'),
    (error: StoreFailure) => error,
  )
  return sqlState(failure.cause)
}

for (const first of ['reads', 'writes'] as const) {
  test(`a transaction that ${first} first commits what was sent and not waited for`, async (t) => {
    const connection = await setUp(t)
    await connection.transaction(async () => {
      connection.send('INSERT INTO kept VALUES (1)')
      connection.send('INSERT INTO kept VALUES (2)')
    }, first)
    assert.deepEqual(await kept(connection), [1, 2])
  })
}

test('what was sent and failed fails the commit behind it, under its own name, and nothing stays', async (t) => {
  const connection = await setUp(t)
  const failing = connection.transaction(async () => {
    connection.send('INSERT INTO kept VALUES (1)')
    connection.send(DIVIDE)
    connection.send('INSERT INTO kept VALUES (2)')
  }, 'reads')
  assert.equal(await stateOf(failing), DIVISION_BY_ZERO)
  assert.deepEqual(await kept(connection), [], 'and the connection is as good as before')
})

test('what is asked behind a failure is told that failure', async (t) => {
  const connection = await setUp(t)
  const failing = connection.transaction(async () => {
    connection.send(DIVIDE)
    await connection.query('SELECT 1')
    assert.fail('not reached')
  })
  assert.equal(await stateOf(failing), DIVISION_BY_ZERO)
})

test('of two that are asked together the one that failed is told, whichever is answered for first', async (t) => {
  const connection = await setUp(t)
  for (const asked of [
    [DIVIDE, 'SELECT 1'],
    [DIVIDE, DIVIDE],
    ['SELECT 1', DIVIDE],
  ]) {
    const failing = connection.transaction(() => Promise.all(asked.map((text) => connection.query(text))), 'reads')
    assert.equal(await stateOf(failing), DIVISION_BY_ZERO)
  }
})

test('a failure that was undone by a savepoint is not told again', async (t) => {
  const connection = await setUp(t)
  await connection.transaction(async () => {
    const undone = await connection.savepoint(async () => connection.send(DIVIDE))
    assert.equal(sqlState(undone?.cause), DIVISION_BY_ZERO)
    connection.send('INSERT INTO kept VALUES (1)')
  })
  assert.deepEqual(await kept(connection), [1])
  const failing = connection.transaction(async () => {
    connection.send('INSERT INTO kept VALUES (NULL), (2)')
    connection.send('SELECT nothing')
  })
  assert.equal(await stateOf(failing), '42703')
  assert.deepEqual(await kept(connection), [1])
})

test('a transaction that its own code ends leaves nothing behind, answered or not', async (t) => {
  const connection = await setUp(t)
  const failing = connection.transaction(async () => {
    connection.send('INSERT INTO kept VALUES (1)')
    throw new Error('changed its mind')
  }, 'reads')
  await assert.rejects(failing, /changed its mind/)
  assert.deepEqual(await kept(connection), [])
})

test('where the first statement writes, it is not sent before BEGIN was answered', async (t) => {
  const connection = await setUp(t)
  // BEGIN fails here, since a transaction that was left open has failed.
  await connection.script('BEGIN')
  assert.equal(await stateOf(connection.query(DIVIDE)), DIVISION_BY_ZERO)
  let isBegun = false
  const failing = connection.transaction(async () => {
    isBegun = true
    connection.send('INSERT INTO kept VALUES (1)')
  })
  assert.equal(await stateOf(failing), DIVISION_BY_ZERO)
  assert.equal(isBegun, false)
})

test('a transaction that starts over has let go of what it locked, and commits what comes after', async (t) => {
  const url = await newPostgresDatabase()
  const [one, other] = await Promise.all([0, 1].map(() => Connection.open(parseAddress(url).hosts[0]!)))
  t.after(() => Promise.all([one!.close(), other!.close()]))
  await one!.script('CREATE TABLE kept (n integer); INSERT INTO kept VALUES (1)')
  const isFree = async () => (await other!.query('SELECT n FROM kept FOR UPDATE SKIP LOCKED')).length === 1
  await one!.transaction(async () => {
    await one!.query('SELECT n FROM kept FOR UPDATE')
    assert.equal(await isFree(), false)
    one!.startOver()
    await one!.query('SELECT 1')
    assert.equal(await isFree(), true)
    one!.send('INSERT INTO kept VALUES (2)')
  }, 'reads')
  assert.deepEqual(await kept(other!), [1, 2])
})

test('a warning while others are under way is nobody’s acknowledgement, and the connection is not used again', async (t) => {
  const connection = await setUp(t)
  const asked = await Promise.allSettled([
    connection.script('INSERT INTO kept VALUES (1)'),
    connection.script("DO $$ BEGIN RAISE WARNING 'cancelled'; END $$"),
    connection.script('INSERT INTO kept VALUES (2)'),
  ])
  assert.deepEqual(
    asked.slice(1).map(({ status }) => status),
    ['rejected', 'rejected'],
  )
  assert.equal(connection.isBroken, true)
})

test('a warning that came alone fails its own statement and no other', async (t) => {
  const connection = await setUp(t)
  await assert.rejects(connection.script("DO $$ BEGIN RAISE WARNING 'cancelled'; END $$"), /cancelled/)
  assert.equal(connection.isBroken, false)
  await connection.script('INSERT INTO kept VALUES (1)')
  assert.deepEqual(await kept(connection), [1])
})

const sleep = (seconds: number): Statement => ({
  name: `sleep_${seconds}`,
  text: `SELECT $1::text[] FROM pg_sleep(${seconds})`,
})

function ask(connection: Connection, statement: Statement, timeoutMs: number): Promise<readonly unknown[]> {
  const message = new BindMessage()
  message.begin(statement.name)
  message.array('text', (writer) => writer.text(statement.name))
  message.end()
  return connection.cells(statement, message, timeoutMs)
}

test('who stands behind another is given its own time, and more if the other needs it', async (t) => {
  const connection = await setUp(t)
  const answers = await Promise.all([ask(connection, sleep(0.5), 60_000), ask(connection, sleep(0), 100)])
  assert.deepEqual(answers, [['{sleep_0.5}'], ['{sleep_0}']])
  await assert.rejects(ask(connection, sleep(1000), 100), /timeout/i)
  assert.equal(connection.isBroken, true)
})

test('the time of those who were answered is not given to those who come later, however long the row was', async (t) => {
  const connection = await setUp(t)
  // More than a machine stands still for; whoever is behind the last one waits for it.
  const limitMs = 20_000
  let last = ask(connection, sleep(0.01), limitMs)
  for (let n = 0; n < 30; n++) {
    const next = ask(connection, sleep(0.01), limitMs)
    await last
    last = next
  }
  // Added up, it would be given ten minutes.
  const stuck = ask(connection, sleep(1000), 100).then(
    () => 'answered',
    () => 'given up',
  )
  const late = new Promise((resolve) => setTimeout(resolve, 120_000, 'late').unref())
  assert.equal(await Promise.race([stuck, late]), 'given up')
})

test('the same statement twice at once on a new connection is prepared once', async (t) => {
  const connection = await setUp(t)
  const answers = await Promise.all([1, 2, 3].map(() => ask(connection, sleep(0), 60_000)))
  assert.deepEqual(answers, [['{sleep_0}'], ['{sleep_0}'], ['{sleep_0}']])
  assert.equal(connection.isBroken, false)
})

test('a process that stands still while it connects is connected afterwards', async () => {
  const [host] = parseAddress(await newPostgresDatabase()).hosts
  const opening = Connection.open(host!)
  // Longer than a server may take to answer.
  setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 4000))
  const connection = await opening
  assert.deepEqual(await connection.query('SELECT 1 AS one'), [{ one: 1 }])
  await connection.close()
})

test('a server that takes a connection and says nothing is given up', async (t) => {
  const silent = createServer()
  await once(silent.listen(0, '127.0.0.1'), 'listening')
  t.after(() => silent.close())
  const { port } = silent.address() as AddressInfo
  const [host] = parseAddress(`postgres://intray@127.0.0.1:${port}/intray`).hosts
  await assert.rejects(within('the end of the wait', Connection.open(host!)), /timeout expired/)
})

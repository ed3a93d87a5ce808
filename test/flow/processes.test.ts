// Many senders in processes of their own, all at the same moment.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { conversationCounts, createToken, readJournal, untilIndexed, withStore } from '../support/journal.ts'
import { cleanEnvironment, startServer } from '../support/process.ts'
import { tempFolder } from '../support/temp.ts'
import { within } from '../support/until.ts'

const CLIENT = fileURLToPath(new URL('../support/resend-client.ts', import.meta.url))
const PROCESSES = 10
const EACH = 20

interface Answer {
  readonly status: number
  readonly id: number
  readonly duplicate?: boolean
  readonly conflict?: boolean
}

/** One sender: `go` resolves with its answers. */
async function startClient(t: TestContext) {
  const child = spawn(process.execPath, [CLIENT], { env: cleanEnvironment({}), stdio: ['pipe', 'pipe', 'inherit'] })
  t.after(() => child.kill('SIGKILL'))
  let printed = ''
  child.stdout.on('data', (chunk: Buffer) => (printed += chunk))
  const closed = once(child, 'close')
  await within('a client to be ready', once(child.stdout, 'data'))
  return {
    async go(job: { port: number; token: string; bodies: readonly string[] }): Promise<Answer[]> {
      child.stdin.end(JSON.stringify(job))
      const [code] = await within('a client to end', closed)
      assert.equal(code, 0)
      return JSON.parse(printed.slice('ready\n'.length)) as Answer[]
    },
  }
}

/** Starts all senders, then lets them go together. */
async function sendFromProcesses(t: TestContext, bodiesOf: (client: number) => readonly string[]) {
  const databaseUrl = `sqlite:${join(tempFolder('processes'), 'intray.db')}`
  const token = await withStore(databaseUrl, (store) => createToken(store))
  const { port } = await startServer(t, { INTRAY_DATABASE_URL: databaseUrl })
  const clients = await Promise.all(Array.from({ length: PROCESSES }, () => startClient(t)))
  const answers = await Promise.all(clients.map((client, index) => client.go({ port, token, bodies: bodiesOf(index) })))
  return { databaseUrl, answers: answers.flat() }
}

test('200 parallel re-sends of one source_ref from 10 processes are 200 × 200, one id and one event', async (t) => {
  const body = '{"source_ref":"form:1","channel_ref":"site","message":{"type":"text","text":"sent 200 times"}}'
  const { databaseUrl, answers } = await sendFromProcesses(t, () => Array.from({ length: EACH }, () => body))
  assert.equal(answers.length, PROCESSES * EACH)
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]))
  assert.deepEqual(new Set(answers.map(({ id }) => id)), new Set([1]))
  assert.equal(answers.filter(({ duplicate }) => duplicate === undefined).length, 1, 'one of them was the first')
  assert.equal(answers.filter(({ conflict }) => conflict !== undefined).length, 0)

  const [row, ...more] = await readJournal(databaseUrl)
  assert.equal(more.length, 0)
  assert.equal(Buffer.from(row!.payload!).toString(), body)
  await untilIndexed(databaseUrl)
  const repeats = await withStore(databaseUrl, (store) => store.events.repeats(row!.event))
  assert.equal(repeats?.resends, PROCESSES * EACH - 1)
  assert.deepEqual((await conversationCounts(databaseUrl)).indexed, { site: 1 })
})

test('the index catches up with 10 processes: the counts of its conversations are the rows of the journal', async (t) => {
  const bodiesOf = (client: number) =>
    Array.from({ length: EACH }, (_, n) =>
      JSON.stringify({ source_ref: `${n % 4 === 0 ? 'shared' : client}:${n}`, channel_ref: `page/${n % 3}`, n }),
    )
  const { databaseUrl, answers } = await sendFromProcesses(t, bodiesOf)
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]))
  const shared = EACH / 4
  const events = shared + PROCESSES * (EACH - shared)
  assert.equal(new Set(answers.map(({ id }) => id)).size, events)
  await untilIndexed(databaseUrl)
  const { indexed, rows } = await conversationCounts(databaseUrl)
  assert.deepEqual(indexed, rows)
  assert.equal(
    Object.values(rows).reduce((sum, count) => sum + count, 0),
    events,
  )
})

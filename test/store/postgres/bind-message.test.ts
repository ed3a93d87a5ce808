// Parameters laid out by us: the server reads what was written, however large it is and whatever was in the message before.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import { bigints } from '../../../src/store/postgres/connection/binary-array.ts'
import { BindMessage } from '../../../src/store/postgres/connection/bind-message.ts'
import { Connection, type Statement } from '../../../src/store/postgres/connection/connection.ts'
import { newPostgresDatabase } from '../../support/postgres/databases.ts'
import { DEADLINE_MS } from '../../support/until.ts'

const ECHO: Statement = {
  name: 'echo',
  text: `SELECT array_to_json($1::text[])::text, array_to_json(ARRAY(SELECT encode(b, 'hex') FROM unnest($2::bytea[]) b))::text,
    array_to_json($3::bigint[])::text`,
}

let connection: Connection
before(async () => {
  const connectionString = await newPostgresDatabase()
  connection = await Connection.open({ connectionString, name: 'test' })
})
after(() => connection.close())

const echo = async (message: BindMessage): Promise<unknown[]> =>
  (await connection.cells(ECHO, message, DEADLINE_MS)).map((cell) => JSON.parse(cell as string) as unknown)

function write(
  message: BindMessage,
  texts: readonly (string | null)[],
  bytes: readonly Uint8Array[],
  ids: readonly number[],
) {
  message.begin(ECHO.name)
  message.array('text', (writer) => {
    for (const text of texts) writer.text(text)
  })
  message.array('bytea', (writer) => {
    for (const one of bytes) writer.bytes(one)
  })
  message.value(bigints(ids))
  message.end()
}

test('what the server reads is what was written, again and again into one message', async () => {
  const message = new BindMessage()
  const text = fc.option(fc.string({ unit: 'grapheme' }).filter((value) => !value.includes('\0')))
  await fc.assert(
    fc.asyncProperty(
      fc.array(text, { maxLength: 20 }),
      fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 20 }),
      fc.array(fc.maxSafeInteger(), { maxLength: 20 }),
      async (texts, bytes, ids) => {
        write(message, texts, bytes, ids)
        const hex = bytes.map((one) => Buffer.from(one).toString('hex'))
        assert.deepEqual(await echo(message), [texts, hex, ids])
        assert.equal(message.parameters.length, 3)
      },
    ),
    { numRuns: 60 },
  )
})

test('a large one makes room for itself, and the next has only what is its own', async () => {
  const message = new BindMessage()
  const large = Buffer.alloc(3_000_000, 7)
  write(message, ['large'], [large], [1])
  assert.deepEqual(await echo(message), [['large'], [large.toString('hex')], [1]])
  assert.ok(message.capacity > large.length)
  write(message, ['small'], [], [2, 3])
  assert.deepEqual(await echo(message), [['small'], [], [2, 3]])
  assert.ok(message.bytes.length < 200)
})

test('an error of such a statement is told, and the connection goes on', async () => {
  const message = new BindMessage()
  message.begin(ECHO.name)
  for (let n = 0; n < 3; n++) message.value(Buffer.from('no array'))
  message.end()
  await assert.rejects(connection.cells(ECHO, message, DEADLINE_MS), /dimensions/)
  write(message, ['on'], [], [])
  assert.deepEqual(await echo(message), [['on'], [], []])
})

test('one with which a try failed is not written to again', () => {
  const message = new BindMessage()
  write(message, ['lost'], [], [])
  message.mayBeInFlight = true
  assert.throws(() => message.begin(ECHO.name), /in flight/)
})

test('one large value takes little more room than it needs', () => {
  const message = new BindMessage()
  write(message, [], [Buffer.alloc(900_000)], [])
  assert.ok(message.capacity < 1_000_000, String(message.capacity))
})

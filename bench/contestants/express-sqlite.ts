// A typical server on SQLite: Express 5, express.json(), one durable insert a request. The database path is its
// argument.
// Promises: WAL and synchronous=FULL like Intray, statements prepared once; a repeated source_ref answers the first id.

import type { AddressInfo } from 'node:net'
import { DatabaseSync } from 'node:sqlite'
import express from 'express'

interface Message {
  readonly source_ref: string
  readonly channel_ref: string
}

const path = process.argv[2]
if (path === undefined) throw new Error('usage: express.ts <database path>')

const database = new DatabaseSync(path)
database.exec('pragma journal_mode = wal; pragma synchronous = full')
database.exec(`create table events (
  id integer primary key autoincrement,
  source_ref text not null unique,
  channel_ref text,
  payload text not null,
  received_at integer not null
)`)
const insert = database.prepare(
  'insert or ignore into events (source_ref, channel_ref, payload, received_at) values (?, ?, ?, ?)',
)
const find = database.prepare('select id from events where source_ref = ?')

const app = express()
app.use(express.json())
app.post('/v1/inbox/events', (request, response) => {
  const message = request.body as Message
  const { changes, lastInsertRowid } = insert.run(
    message.source_ref,
    message.channel_ref,
    JSON.stringify(message),
    Date.now(),
  )
  const id = changes === 1 ? lastInsertRowid : find.get(message.source_ref)?.id
  response.json({ ok: true, id })
})

process.on('disconnect', () => process.exit(0))
const server = app.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))

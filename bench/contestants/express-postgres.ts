// A typical server on PostgreSQL: Express 5, express.json(), a `pg` pool, one insert a request. The database URL is its
// argument.
// Promises: commits are synchronous like Intray's, the statement is prepared; a repeated source_ref answers the first
// id.

import type { AddressInfo } from 'node:net'
import express from 'express'
import pg from 'pg'

interface Message {
  readonly source_ref: string
  readonly channel_ref: string
}

const url = process.argv[2]
if (url === undefined) throw new Error('usage: express-postgres.ts <database url>')

const pool = new pg.Pool({ connectionString: url, max: 10 })
await pool.query(`create table events (
  id bigint generated always as identity primary key,
  source_ref text not null unique,
  channel_ref text,
  payload text not null,
  received_at bigint not null
)`)
const INSERT = {
  name: 'insert',
  text: `insert into events (source_ref, channel_ref, payload, received_at) values ($1, $2, $3, $4)
    on conflict do nothing returning id`,
}
const FIND = { name: 'find', text: 'select id from events where source_ref = $1' }

const app = express()
app.use(express.json())
app.post('/v1/inbox/events', async (request, response) => {
  const message = request.body as Message
  const values = [message.source_ref, message.channel_ref, JSON.stringify(message), Date.now()]
  const inserted = await pool.query({ ...INSERT, values })
  const { rows } = inserted.rowCount === 1 ? inserted : await pool.query({ ...FIND, values: [message.source_ref] })
  response.json({ ok: true, id: Number(rows[0]?.id) })
})

process.on('disconnect', () => process.exit(0))
const server = app.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))

// Questions of a test to its database, past the store.

import assert from 'node:assert/strict'
import { withClient } from './databases.ts'

/** The one cell of the answer. */
export async function ask<R>(url: string, text: string): Promise<R> {
  return withClient(url, async (client) => (await client.query({ text, rowMode: 'array' })).rows[0]![0] as R)
}

/** Every event has its key, with its own bytes, and every key its event. */
export async function assertKeys(url: string): Promise<void> {
  const without = `SELECT count(*) FROM intray.events e FULL JOIN intray.dedupe d ON d.event_id = e.id
    WHERE e.kind IS DISTINCT FROM 'revision' AND (e.id IS NULL OR d.event_id IS NULL OR d.company_id <> e.company_id
      OR d.sha256 <> e.sha256)`
  assert.equal(Number(await ask(url, without)), 0, 'a message has no key of its own')
}

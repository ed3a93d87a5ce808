// Erases one row of the journal beside whatever runs on the database, without the index and the files.

import assert from 'node:assert/strict'
import { openStore } from '../../src/store/open.ts'

export async function eraseEvent(url: string, id: number, at: number): Promise<void> {
  const store = await openStore(url, { role: 'tool' })
  try {
    const event = await store.events.find(id)
    assert.equal(await store.erasures.erase(event!, [id], at), 1)
  } finally {
    await store.close()
  }
}

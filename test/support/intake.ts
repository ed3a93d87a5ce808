// What the tests of the two intake addresses share.

import type { StoredEvent } from '../../src/model/event.ts'
import type { TestApp } from './app.ts'
import type { TestAnswer } from './client.ts'

/** The alias is the same code: whatever is tested is tested on both. */
export const INTAKE_PATHS = ['/v1/inbox/events', '/api/inbox'] as const

export function jsonHeaders(token: string): Record<string, string> {
  return { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
}

/** Posts a body as JSON to the given path. */
export function postTo(
  app: TestApp,
  path: string,
  body: string | Uint8Array,
  headers: Record<string, string | string[]> = {},
): Promise<TestAnswer> {
  return app.send({ method: 'POST', path, headers: { ...jsonHeaders(app.token), ...headers }, body })
}

/** The id that a post was given. */
export function idOf(answer: TestAnswer): number {
  return answer.json?.id as number
}

/** Every row of the journal with an id between the two, both left out. Ids are in order of commit, gaps or not. */
export async function rowsBetween(app: TestApp, after: number, before: number): Promise<StoredEvent[]> {
  const rows: StoredEvent[] = []
  for (let id = after + 1; id < before; id += 1) {
    const row = await app.store.events.find(id)
    if (row) rows.push(row)
  }
  return rows
}

/** The rows that were stored while `during` ran, on a service where nothing else stores. */
export async function rowsStoredDuring(app: TestApp, during: () => Promise<unknown>): Promise<StoredEvent[]> {
  const before = idOf(await app.post('{}'))
  await during()
  return rowsBetween(app, before, idOf(await app.post('{}')))
}

/** All revisions of an event, oldest first. */
export async function revisionsOf(app: TestApp, eventId: number): Promise<StoredEvent[]> {
  const found: StoredEvent[] = []
  for (;;) {
    const page = await app.store.events.revisions(eventId, found.at(-1)?.id ?? 0, 100)
    if (page.length === 0) return found
    found.push(...page)
  }
}

// What the tests of reading the inbox share: a processor's token and calls with it.

import assert from 'node:assert/strict'
import type { TestApp, TokenOptions } from './app.ts'
import type { TestAnswer } from './client.ts'
import { until } from './until.ts'

export type Json = Record<string, unknown>

/** A reader of one tenant: by default the one that `app.post` sends for. */
export interface Reader {
  readonly token: string
  get(path: string, headers?: Record<string, string>): Promise<TestAnswer>
  /** The answer's JSON; fails if it is not 200. */
  jsonNow(path: string): Promise<Json>
  /** The same with nothing missing: asked again while it says that the index is behind, as on a machine that stands still for seconds. */
  json(path: string): Promise<Json>
  /** All rows of a list, page by page. */
  all(path: string, name: string): Promise<Json[]>
}

export async function readerOf(app: TestApp, tenant: Omit<TokenOptions, 'scope'> = {}): Promise<Reader> {
  const token = await app.createToken({ ...tenant, scope: 'processor' })
  const get = (path: string, headers: Record<string, string> = {}) =>
    app.send({ path, headers: { Authorization: `Bearer ${token}`, ...headers } })
  const jsonNow = async (path: string): Promise<Json> => {
    const answer = await get(path)
    assert.equal(answer.status, 200, `${path}: ${answer.text}`)
    return answer.json!
  }
  const json = (path: string): Promise<Json> =>
    until('the index is not behind', async () => {
      const answer = await jsonNow(path)
      return answer.index_lag === undefined && answer
    })
  return {
    token,
    get,
    jsonNow,
    json,
    async all(path, name) {
      const rows: Json[] = []
      for (let cursor = ''; ; ) {
        const page = await json(path + cursor)
        rows.push(...(page[name] as Json[]))
        if (page.next === null) return rows
        cursor = `${path.includes('?') ? '&' : '?'}cursor=${page.next as string}`
      }
    },
  }
}

export const idsOf = (rows: readonly Json[]): number[] => rows.map(({ id }) => id as number)

// Everything that a service says of what it keeps, by its API and its commands: recorded when a release made its database, and
// compared after an upgrade.

import assert from 'node:assert/strict'
import { until } from '../../support/until.ts'
import type { Tokens } from './fill.ts'

type Json = Record<string, unknown>
type Answers = Record<string, unknown>

/** Of the service that runs, not of what is kept. */
const PASSING = ['request_id', 'index_lag']

const LISTS = [
  ['token', 'list'],
  ['operator', 'list'],
  ['retention', 'show'],
]
/** When tokens and operators were last used. */
const LAST_USED = /,"last_\w+_at":("[^"]*"|null)/g

/** `intray` runs a command and returns what it printed. */
export async function readLists(intray: (...args: string[]) => Promise<string>): Promise<Answers> {
  const lists: Answers = {}
  for (const args of LISTS) lists[args.join(' ')] = (await intray(...args, '--json')).replace(LAST_USED, '')
  return lists
}

export async function readAnswers(url: string, { processor, otherProcessor }: Tokens): Promise<Answers> {
  const answers: Answers = {}
  for (const [tenant, token] of Object.entries({ one: processor, other: otherProcessor })) {
    const get = async (path: string): Promise<Json> => {
      const answer = await fetch(url + path, { headers: { Authorization: `Bearer ${token}` } })
      const isJson = answer.headers.get('content-type')?.startsWith('application/json')
      if (isJson && answer.status !== 200)
        return { status: answer.status, error: ((await answer.json()) as Json).error }
      if (path.endsWith('/payload')) return { bytes: Buffer.from(await answer.arrayBuffer()).toString('base64') }
      return (await answer.json()) as Json
    }
    const read = async (path: string): Promise<Json> => {
      const said = await until(`the index has all of ${path}`, async () => {
        const found = await get(path)
        return found.index_lag === undefined && found
      })
      for (const name of PASSING) delete said[name]
      // What is compared is all there is: no page after the first.
      assert.equal(said.next ?? null, null)
      answers[`${tenant} ${path}`] = said
      return said
    }
    const idsAt = async (path: string, name: string) =>
      ((await read(path))[name] as { id: number }[]).map(({ id }) => id)

    for (const state of ['pending', 'dead', 'done']) await read(`/v1/inbox/events?limit=100&state=${state}`)
    await read('/v1/inbox/events?limit=100&q=lovelace')
    const ids = await idsAt('/v1/inbox/events?limit=100', 'events')
    const revisions: number[] = []
    for (const id of ids) revisions.push(...(await idsAt(`/v1/inbox/events/${id}/revisions`, 'revisions')))
    for (const id of [...ids, ...revisions]) {
      await read(`/v1/inbox/events/${id}`)
      await read(`/v1/inbox/events/${id}/payload`)
    }
    for (const id of ids) await read(`/v1/inbox/events/${id}/history`)
    for (const id of await idsAt('/v1/inbox/conversations?limit=100', 'conversations')) {
      await read(`/v1/inbox/conversations/${id}`)
      await read(`/v1/inbox/conversations/${id}/events`)
    }
    await read('/v1/inbox/refusals')
    await read('/v1/inbox/subscriptions')
  }
  return answers
}

// A service under hostile requests: plays cases, counts them, and audits the journal, in which there must be what was
// answered with an id, byte for byte, and nothing else.

import assert from 'node:assert/strict'
import type { TestApp } from '../support/app.ts'
import { idOf, rowsBetween } from '../support/intake.ts'
import type { HostileCase } from './hostile-case.ts'
import { violations } from './verdict.ts'
import { type Observed, play } from './wire.ts'

const AT_ONCE = 24

/** What the audit needs of a service, real or made to fail. */
export interface Fortress {
  readonly port: number
  /** Ids and payloads of everything stored since it was last asked. */
  takeStored(): Promise<Map<number, Buffer>>
}

export function fortressOf(app: TestApp): Fortress {
  let last = 0
  return {
    port: app.port,
    async takeStored() {
      const good = await app.post('{}')
      assert.equal(good.status, 200, 'a good request afterwards')
      const marker = idOf(good)
      const stored = new Map<number, Buffer>()
      for (const { id } of await rowsBetween(app, last, marker)) {
        stored.set(id, Buffer.from((await app.store.events.payload(id))!))
      }
      last = marker
      return stored
    },
  }
}

export class Siege {
  /** Requests sent, those of cases that hold several one by one. */
  requests = 0
  readonly #fortress: Fortress

  constructor(fortress: Fortress) {
    this.#fortress = fortress
  }

  /** Plays all, several at once, and audits. What is wrong, sentence by sentence. */
  async play(cases: readonly HostileCase[], hangMs?: number): Promise<string[]> {
    const found: string[] = []
    const expected = new Map<number, { name: string; payload: Buffer }>()
    let next = 0
    const worker = async (): Promise<void> => {
      for (let item = cases[next++]; item !== undefined; item = cases[next++]) {
        this.requests += Math.max(1, item.answers.length)
        const observed = await play(this.#fortress.port, item, hangMs)
        found.push(...violations(item, observed), ...noteIds(item, observed, expected))
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, worker))
    return [...found, ...(await this.#audit(expected))]
  }

  async #audit(expected: ReadonlyMap<number, { name: string; payload: Buffer }>): Promise<string[]> {
    const found: string[] = []
    const stored = await this.#fortress.takeStored()
    for (const [id, payload] of stored) {
      if (!expected.has(id)) found.push(`a second message out of one: ${payload.subarray(0, 200).toString('latin1')}`)
    }
    for (const [id, { name, payload }] of expected) {
      const kept = stored.get(id)
      if (!kept?.equals(payload)) found.push(`${name}: the bytes of ${id} are ${kept ? 'others' : 'not there'}`)
    }
    return found
  }
}

function noteIds(
  item: HostileCase,
  { answers }: Observed,
  expected: Map<number, { name: string; payload: Buffer }>,
): string[] {
  const ids = answers.flatMap(({ status, body }) => {
    const id = status === 200 ? /^\{"ok":true,"id":(\d+)\}$/.exec(body)?.[1] : undefined
    return id === undefined ? [] : [Number(id)]
  })
  for (const [n, id] of ids.entries()) {
    const payload = item.stored[n]
    if (payload && !expected.has(id)) expected.set(id, { name: item.name, payload })
  }
  return ids.length === item.stored.length
    ? []
    : [`${item.name}: ${ids.length} stored instead of ${item.stored.length}`]
}

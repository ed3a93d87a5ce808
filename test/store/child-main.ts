// What a child process of the store tests does. It says what it is about to do before it does it, in whole lines that
// leave the process at once, so that whoever kills it knows how far it came.

import { once } from 'node:events'
import { writeSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { type Erased, Erasures } from '../../src/erasure/erasures.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import type { ErasureStore } from '../../src/store/contract/erasures.ts'
import type { StoreOptions } from '../../src/store/contract/store.ts'
import { openStore } from '../../src/store/open.ts'
import { idOf, item, newToken, TENANT } from './rows.ts'

const say = (line: string): void => void writeSync(1, `${line}\n`)

const COMMANDS: Record<string, (url: string, ...args: string[]) => Promise<void>> = {
  /** Opens as the server, reports itself, and stays until it is killed. */
  async serve(url, nodeId) {
    const store = await openStore(url, { role: 'server' })
    if (nodeId) await store.nodes.report({ nodeId, tokenGeneration: 5 })
    say('ready')
    await untilKilled()
  },
  /** Opens when it is told to, so that many can do it at once. Says the schema and the identity it found. */
  async open(url, role) {
    // With the driver loaded, only the open itself is left to do.
    if (url.startsWith('sqlite:')) await import('../../src/store/sqlite/store.ts')
    else await import('../../src/store/postgres/store.ts')
    say('waiting')
    await once(process.stdin, 'data')
    process.stdin.destroy()
    const store = await openStore(url, { role: role as StoreOptions['role'] })
    say(`opened ${store.facts.schema_version} ${store.facts.database_uuid}`)
    await store.close()
    say('closed')
  },
  /** Asks again and again who is alive, until it is killed. */
  async look(url) {
    const store = await openStore(url, { role: 'tool' })
    say('looking')
    for (;;) {
      for (let n = 0; n < 100; n++) await store.nodes.live()
      await new Promise((resolve) => setImmediate(resolve))
    }
  },
  /**
   * Steps the index, one small step after the other, until there is nothing left to do. After the step with the number `last` it
   * takes no other: a kill at that step comes no later, however long it is under way.
   */
  async index(url, role, maxRows, last = 'Infinity') {
    const store = await openStore(url, { role: role as StoreOptions['role'] })
    let steps = 0
    const take = async <T>(what: string, step: () => Promise<T>): Promise<T> => {
      say(what)
      const result = await step()
      if (steps++ === Number(last)) await untilKilled()
      return result
    }
    for (let idle = 0; ; ) {
      const limits = { maxRows: Number(maxRows), maxBytes: 1 << 30 }
      const { lag, clearing, indexed } = await take('step', () => store.index.step(limits))
      const { searchLag } = await take('words', () => store.index.stepWords({ ...limits, maxWords: 2048 }))
      if (lag === 0 && searchLag === 0 && !clearing) break
      // Many in a row that did nothing but re-sends are possible; without end they are not.
      idle = indexed === 0 && !clearing ? idle + 1 : 0
      if (idle > 10_000) throw new Error(`the index stands still with a lag of ${lag}`)
    }
    say('done')
    await store.close()
  },
  /** Erases what an address sent, and then what files keep of it. After the call with the number `last` it makes no other. */
  async erase(url, role, email, last = 'Infinity') {
    const store = await openStore(url, { role: role as StoreOptions['role'] })
    let calls = 0
    const take = async <T>(what: string, call: () => Promise<T>): Promise<T> => {
      say(what)
      const result = await call()
      if (calls++ === Number(last)) await untilKilled()
      return result
    }
    const { erase, deleteRefusals, purge } = store.erasures
    const announced: ErasureStore = {
      ...store.erasures,
      erase: (...args) => take('erase', () => erase(...args)),
      deleteRefusals: (...args) => take('refusals', () => deleteRefusals(...args)),
    }
    const erasures = new Erasures({ store: { ...store, erasures: announced }, clock: systemClock })
    for (let after: number | null = null; ; ) {
      const page: Erased = await erasures.page(TENANT, { selector: { email }, dryRun: false, after })
      if ((after = page.next) === null) break
    }
    while ((await take('purge', purge)).more);
    say('done')
    await store.close()
  },
  /** Makes and disables tokens, one after the other, and counts what failed. */
  async 'write-tokens'(url, count) {
    const store = await openStore(url, { role: 'tool' })
    await repeat(Number(count), async () => {
      const token = newToken()
      await store.tokens.create(token)
      await store.tokens.setActive(token.keyId, false, token.createdAt)
    })
    await store.close()
  },
  /**
   * Sends refs 0 to count − 1 in one order or the other, several batches at a time, from a place on: the bytes of a ref are always the
   * same. Says the id that each was answered with.
   */
  async 'send-refs'(url, role, order, count, from) {
    const store = await openStore(url, { role: role as StoreOptions['role'] })
    say('waiting')
    await once(process.stdin, 'data')
    process.stdin.destroy()
    const refs = Array.from({ length: Number(count) }, (_, n) => (order === 'up' ? n : Number(count) - 1 - n))
    const send = async (batch: readonly number[]): Promise<void> => {
      const outcomes = await store.journal.append(
        batch.map((ref) => item({ sourceRef: `ref:${ref}`, channelRef: 'page', body: { ref } })),
      )
      say(batch.map((ref, n) => `answer ${ref} ${idOf(outcomes[n])}`).join('\n'))
    }
    const inFlight = 4
    const size = 16
    for (let at = Number(from); at < refs.length; at += inFlight * size) {
      say('sending')
      const batches = Array.from({ length: inFlight }, (_, n) => refs.slice(at + n * size, at + (n + 1) * size))
      await Promise.all(batches.filter((batch) => batch.length > 0).map(send))
    }
    say('done')
    await store.close()
  },
  /** Appends one event after the other, and counts what failed. */
  async 'write-events'(url, count) {
    const store = await openStore(url, { role: 'tool' })
    await repeat(Number(count), async (n) => {
      const [outcome] = await store.journal.append([item({ sourceRef: `tool-${n}`, body: `from a tool ${n}` })])
      say(`stored ${idOf(outcome)}`)
    })
    await store.close()
  },
}

function untilKilled(): Promise<never> {
  setInterval(() => {}, 60_000)
  return new Promise(() => {})
}

async function repeat(count: number, work: (n: number) => Promise<void>): Promise<void> {
  let failures = 0
  for (let n = 0; n < count; n++) {
    const startedAt = performance.now()
    await work(n).catch((error: unknown) => {
      failures += 1
      say(`failed ${n}: ${String(error)}`)
    })
    // On a slow disk a command that writes without a pause has SQLite's lock nearly all the time, and others look for it 10 times a second.
    await pause(performance.now() - startedAt)
  }
  say(`failures ${failures}`)
}

const [command = '', url = '', ...args] = process.argv.slice(2)
await COMMANDS[command]!(url, ...args)

// A control, for tests only: Intray with a journal that acknowledges before anything is on disk. A batch is passed on
// a little later. Killed under load it must lose messages; an audit that does not notice
// proves nothing about the real server.

import { createLogger } from '../../src/runtime/log.ts'
import { startApp } from '../../src/app.ts'
import { loadConfig } from '../../src/config.ts'
import type { Appender } from '../../src/store/contract/append.ts'
import { openStore } from '../../src/store/open.ts'

/** Longer than senders take for their next messages, on a slow machine too. */
const PASS_ON_AFTER_MS = 250

function hasty(journal: Appender): Appender {
  let madeUpId = 0
  return {
    append: async (items) => {
      setTimeout(() => void journal.append(items), PASS_ON_AFTER_MS)
      return items.map(() => ({ outcome: 'stored', id: ++madeUpId }))
    },
  }
}

const config = loadConfig(process.env)
const store = await openStore(config.databaseUrl, { role: 'server' })
const unsafe = { ...store, journal: hasty(store.journal) }
const { address } = await startApp({ config, store: unsafe, logger: createLogger('silent', () => {}) })
process.stdout.write(`The unsafe control is listening on ${address}\n`)

// A control, for tests only: Intray with a journal that acknowledges before anything is on disk. A batch is passed on
// when the next one arrives or a little later. Killed under load it must lose messages; an audit that does not notice
// proves nothing about the real server.

import { createLogger } from '../../src/runtime/log.ts'
import { startApp } from '../../src/app.ts'
import { loadConfig } from '../../src/config.ts'
import type { Appender, AppendItem } from '../../src/store/contract/append.ts'
import { openStore } from '../../src/store/open.ts'

const PASS_ON_AFTER_MS = 50

function hasty(journal: Appender): Appender {
  let held: AppendItem[] = []
  let madeUpId = 0
  const passOn = () => {
    const late = held
    held = []
    if (late.length > 0) void journal.append(late)
  }
  return {
    append: async (items) => {
      passOn()
      held = [...items]
      setTimeout(passOn, PASS_ON_AFTER_MS)
      return items.map(() => ({ outcome: 'stored', id: ++madeUpId }))
    },
  }
}

const config = loadConfig(process.env)
const store = await openStore(config.databaseUrl, { role: 'server' })
const unsafe = { ...store, journal: hasty(store.journal) }
const { address } = await startApp({ config, store: unsafe, logger: createLogger('silent', () => {}) })
process.stdout.write(`The unsafe control is listening on ${address}\n`)

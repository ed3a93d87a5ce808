// What a server says on stdout once it listens: its address, its database, its console and, on the first start, how to begin.

import type { Config } from '../../config.ts'
import { systemClock } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/log.ts'
import type { Store } from '../../store/contract/store.ts'
import { bootstrap } from './bootstrap.ts'
import { buildConsole } from '../console-build.ts'
import { consoleUrl } from '../server-address.ts'
import { leaveServerNote } from '../server-notes.ts'
import { databaseLine } from '../used-database.ts'

export interface Start {
  readonly address: string
  readonly config: Config
  readonly logger: Logger
  /** With its separator, such as " with 4 workers". */
  readonly processes?: string
}

/** After the server listens: a start that fails must not use up the starter token. */
export async function announce(store: Store, { address, config, logger, processes = '' }: Start): Promise<void> {
  const hasConsole = config.console === 'on'
  const firstSteps = await bootstrap(store, config, address, systemClock.now())
  leaveServerNote(address, config, logger)
  const lines = [`Intray is listening on ${address}${processes}`, databaseLine(config.databaseUrl)]
  if (hasConsole) lines.push(`Console: ${consoleUrl(address)}`)
  process.stdout.write(`${lines.join('\n')}\n${firstSteps}`)
  if (hasConsole) void buildConsole({ say: (line) => process.stdout.write(`${line}\n`) })
}

// Starts Intray on a database that was filled before and is indexed, for measuring reads and steady loads.

import { putEvents } from '../inbox/client.ts'
import { drainIndex } from '../intake/fill.ts'
import type { Scope } from '../scope.ts'
import type { Databases } from './databases.ts'
import { type Intray, startIntray } from './intray.ts'

function say(line: string): void {
  process.stderr.write(`bench: ${line}\n`)
}

export async function startFilledIntray(
  scope: Scope,
  databases: Databases,
  count: number,
  channelOf: (n: number) => string,
): Promise<Intray> {
  const databaseUrl = await databases.newUrl()
  await putEvents(databaseUrl, count, channelOf, (stored) => {
    if (stored % 100_000 === 0) say(`stored ${stored.toLocaleString('en')} of ${count.toLocaleString('en')}`)
  })
  const intray = await startIntray(scope, { ...databases, newUrl: async () => databaseUrl })
  const { firstLag, drainedMs } = await drainIndex(intray)
  say(`indexed ${firstLag.toLocaleString('en')} in ${((drainedMs ?? Number.NaN) / 1000).toFixed(1)} s`)
  return intray
}

// The calls that can be made to fail on PostgreSQL: the statements on their way to the server and its answers, by a proxy that
// counts what goes over the wire while messages are in flight. At the n-th the connection is cut, or the service is killed: before
// the server has it, when the server has it, or when its answer comes back. Every strike is on a copy of one database.
//
// What a failing disk does to the server is PostgreSQL's own to handle, and not struck here.

import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createDatabase, withClient } from '../test/support/postgres/databases.ts'
import { type CutPoint, startProxy, through } from '../test/support/postgres/proxy.ts'
import type { Load } from './load.ts'
import type { ProofContext } from './proof.ts'
import { Service } from './service.ts'
import type { Fault, Injector, Prepared, StrikeOptions, Target } from './strike.ts'

export interface WireFault extends Fault {
  readonly point: CutPoint
}

const POINTS: Readonly<Record<CutPoint, string>> = {
  before: 'before a statement',
  sent: 'behind a statement',
  answered: 'at an answer',
}

export const WIRE_FAULTS: readonly WireFault[] = (['before', 'sent', 'answered'] as const).flatMap((point) => [
  { name: `kill ${POINTS[point]}`, point, must: 'is killed' as const },
  { name: `cut ${POINTS[point]}`, point, must: 'goes on' as const },
])

type Proxy = Awaited<ReturnType<typeof startProxy>>

export async function postgresTarget(
  context: Pick<ProofContext, 'folder' | 'onCleanup' | 'newDatabase'>,
): Promise<Target<WireFault>> {
  const templateUrl = await context.newDatabase()
  const template = nameIn(templateUrl)
  const env = { NODE_COMPILE_CACHE: join(context.folder, 'compile-cache') }
  const service = new Service(context, { databaseUrl: templateUrl, env })
  const folder = join(context.folder, 'struck')
  return {
    token: await service.mint('cf'),
    processorToken: await service.mint('processor'),
    env,
    prepare: async (): Promise<Prepared<WireFault>> => {
      rmSync(folder, { recursive: true, force: true })
      mkdirSync(folder)
      const plainUrl = await createDatabase(besides(templateUrl), `TEMPLATE ${template}`)
      // Every piece that goes over the wire counts.
      const proxy = await startProxy(Number(new URL(plainUrl).port), '')
      return {
        folder,
        struckUrl: through(proxy, plainUrl),
        plainUrl,
        start: (struck) => struck.start(),
        arm: async (struck, load, options) => arm(proxy, struck, load, options),
        close: async () => {
          await proxy.close()
          await withClient(besides(plainUrl), (client) =>
            client.query(`DROP DATABASE ${nameIn(plainUrl)} WITH (FORCE)`),
          )
        },
      }
    },
  }
}

function arm(proxy: Proxy, service: Service, load: Load, options: StrikeOptions<WireFault>): Injector {
  const { point, must } = options.fault
  // A control that answers too early has nothing in flight when it stores.
  const isCounted = () => (options.command === undefined ? load.inFlight > 0 : load.acknowledged > 0)
  let calls = 0
  let injected = 0
  let inFlight = 0
  proxy.cutAt = () => {
    if (!isCounted()) return null
    calls += 1
    return calls === options.nth ? point : null
  }
  proxy.onCut = () => {
    injected += 1
    inFlight = load.inFlight
    if (must === 'is killed') void service.kill()
  }
  return {
    hasStruck: () => injected > 0,
    end: async () => ({ injected, place: inFlight > 0 ? 'commit' : 'other statement' }),
  }
}

function nameIn(url: string): string {
  return new URL(url).pathname.slice(1)
}

/** Another database of the same server: one that is copied or dropped must not be in use. */
function besides(url: string): string {
  return url.replace(/\/[^/]*$/, '/postgres')
}

// What most proofs begin with: a service on a new database, a client with its journal, and the check of both.

import { join } from 'node:path'
import { check, type Findings } from './check.ts'
import { Inbox } from './inbox.ts'
import { Journal } from './journal.ts'
import { Load, type LoadOptions } from './load.ts'
import type { ProofContext } from './proof.ts'
import { Service, type ServiceOptions } from './service.ts'

export interface Subject {
  readonly service: Service
  readonly load: Load
  readonly inbox: Inbox
  readonly token: string
  readonly processorToken: string
  /** The service must be up. */
  check(): Promise<Findings>
}

export interface SubjectOptions {
  /** Names its journal and its messages; one for each subject of a proof. */
  readonly name: string
  readonly service?: Omit<ServiceOptions, 'databaseUrl'> & { readonly databaseUrl?: string }
  readonly load: Pick<LoadOptions, 'onTrouble'> & Partial<LoadOptions>
}

/** The service is not started yet; its tokens are made. */
export async function newSubject(context: ProofContext, options: SubjectOptions): Promise<Subject> {
  const databaseUrl = options.service?.databaseUrl ?? (await context.newDatabase())
  const service = new Service(context, { ...options.service, databaseUrl })
  const token = await service.mint('cf')
  const processorToken = await service.mint('processor')
  const journal = new Journal(join(context.folder, `${options.name}.journal`))
  const load = new Load({
    journal,
    token,
    connections: 12,
    random: context.random.fork(options.name),
    port: () => service.port,
    name: options.name,
    ...options.load,
  })
  const inbox = new Inbox(() => service.port, processorToken)
  context.onCleanup(() => {
    load.close()
    inbox.close()
  })
  return { service, load, inbox, token, processorToken, check: () => check(journal.path, inbox) }
}

/** For the line of a control or of progress. */
export function inWords({ counts, unsettled }: Findings): string {
  const { acknowledged, lost, twice, altered, resurrected, misordered } = counts
  const open = unsettled > 0 ? `, ${unsettled} left unknown` : ''
  return `${acknowledged} acknowledged, ${lost} lost, ${twice} twice, ${altered} altered, ${resurrected} resurrected, ${misordered} misordered${open}`
}

/** What the counts alone do not say. */
export function brokenIn(findings: Findings): string[] {
  const { unsettled, foreign, examples } = findings
  return [
    ...(unsettled > 0 ? [`${unsettled} messages are still unknown after being sent again`] : []),
    ...(foreign > 0 ? [`${foreign} events are stored that nobody sent`] : []),
    ...examples,
  ]
}

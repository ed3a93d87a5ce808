// `./intray endpoint …`: the URLs that subscriptions are delivered to. A change is in effect on every running server within seconds.
// Every change is in the audit log.

import { ENDPOINT_LIMITS } from '../../model/endpoint.ts'
import type { AuditAction } from '../../model/operator.ts'
import { type Tenant, tenantText } from '../../model/principal.ts'
import { attemptSummary, attemptView, endpointView, testView } from '../../processing/push/endpoint-views.ts'
import type { ChangedEndpoint, Missing } from '../../processing/push/endpoints.ts'
import { systemClock } from '../../runtime/clock.ts'
import { wholeNumber } from '../../runtime/parameter.ts'
import { recordCommand } from '../audit.ts'
import { type Command, command, CommandError, commandGroup } from '../command.ts'
import { type EndpointContext, noEndpoint, present, withEndpoints } from '../endpoint-context.ts'
import { printEndpoint } from '../endpoint-output.ts'
import {
  flag,
  JSON_FLAG,
  JSON_LINES_FLAG,
  secondsBetween,
  SUBSCRIPTION_FLAG,
  TENANT_FLAGS,
  tenantOf,
} from '../flags.ts'
import { print, printJson, printList, record, table } from '../output.ts'
import { DEFAULT_SUBSCRIPTION } from '../../model/processing.ts'
import { subscriptionOf } from '../processing-context.ts'
import { endpointReplay } from './endpoint/replay.ts'
import { endpointSet, signingSecretOf } from './endpoint/set.ts'

const FLAGS = { ...TENANT_FLAGS, ...SUBSCRIPTION_FLAG, ...JSON_FLAG }
const { overlapMs } = ENDPOINT_LIMITS
/** Any tenant: a list of all names none. */
const ALL: Tenant = { accountId: 0, companyId: 0 }

const list = command({
  about: 'Lists the endpoints of all tenants, or of one.',
  flags: {
    account: { value: 'N', about: 'Only of this account.' },
    company: { value: 'N', about: 'Only of this company.' },
    ...JSON_LINES_FLAG,
  },
  async run(values) {
    const number = wholeNumber(1, Number.MAX_SAFE_INTEGER)
    const [account, company] = [flag('account', values.account, number), flag('company', values.company, number)]
    await withEndpoints(ALL, DEFAULT_SUBSCRIPTION, async ({ endpoints }) => {
      const all = await endpoints.list(null)
      const found = all
        .filter(({ endpoint }) => account === undefined || endpoint.accountId === account)
        .filter(({ endpoint }) => company === undefined || endpoint.companyId === company)
        .map((one) => ({ tenant: one.endpoint, view: endpointView(one, systemClock.now()) }))
      printList(found, values.json === true, {
        jsonOf: ({ tenant, view }) => ({ account_id: tenant.accountId, company_id: tenant.companyId, ...view }),
        empty: 'No endpoints. Set one: ./intray endpoint set --url URL --account 1 --company 1',
        columns: {
          TENANT: ({ tenant }) => tenantText(tenant),
          SUBSCRIPTION: ({ view }) => view.subscription,
          STATE: ({ view }) => view.state,
          BODY: ({ view }) => view.body,
          URL: ({ view }) => view.url ?? '-',
        },
      })
    })
  },
})

const show = command({
  about: 'Shows an endpoint and the latest requests to it, without its secrets.',
  flags: FLAGS,
  async run(values) {
    await inEndpoints(values, async ({ endpoints, processor, subscription }) => {
      const found = await endpoints.find(processor, subscription)
      if (!found) throw new CommandError(noEndpoint(subscription))
      const attempts = await endpoints.attempts(processor, subscription, ENDPOINT_LIMITS.attempts)
      const view = endpointView(found, systemClock.now())
      const summary = attemptSummary(attempts)
      if (values.json) return printJson({ ...view, recent: summary, attempts: attempts.map(attemptView) })
      printEndpoint(view, null)
      print(`\n${record(summary)}`)
      const rows = attempts
        .slice(0, 10)
        .map(attemptView)
        .map((one) => [
          one.at,
          String(one.event_id),
          String(one.attempt),
          one.failure ?? String(one.status),
          `${one.ms} ms`,
        ])
      if (rows.length > 0) print(`\n${table(['AT', 'EVENT', 'ATTEMPT', 'RESULT', 'TIME'], rows)}`)
    })
  },
})

const pause = changing('endpoint_pause', 'Stops deliveries; events wait and lose no attempts.', (context) =>
  context.endpoints.setActive(context.processor, context.subscription, false),
)

const resume = changing(
  'endpoint_resume',
  'Delivers again: after a pause, after the endpoint answered 410, or at once although its circuit is open.',
  (context) => context.endpoints.setActive(context.processor, context.subscription, true),
)

const rotateSecret = command({
  about:
    'Replaces the signing secret. The new one signs at once, and is printed once; with --overlap the old one signs beside it.',
  flags: {
    ...FLAGS,
    overlap: { value: 'TIME', about: 'How long the old secret signs too: 1m to 30d. Without it: it ends now.' },
    'secret-file': { value: 'FILE', about: 'A secret of your own (whsec_…), from the first line of a file.' },
  },
  async run(values) {
    const seconds = { min: overlapMs.min / 1000, max: overlapMs.max / 1000 }
    const overlap = flag('overlap', values.overlap, secondsBetween(seconds)) ?? null
    const secret = signingSecretOf(values['secret-file']) ?? null
    await inEndpoints(values, async ({ endpoints, processor, subscription, store }) => {
      const rotation = { overlapMs: overlap, secret }
      const made = present(await endpoints.rotateSecret(processor, subscription, rotation), subscription)
      await recordCommand(store, 'endpoint_rotate', subscription, processor)
      printEndpoint(endpointView(made, systemClock.now()), made.madeSecret, values.json)
    })
  },
})

const test = command({
  about:
    'Sends a signed test message from this machine, and prints the answer. Exit code 1 unless it was answered 2xx.',
  flags: FLAGS,
  async run(values) {
    return inEndpoints(values, async ({ endpoints, processor, subscription, store }) => {
      const tested = present(await endpoints.test(processor, subscription), subscription)
      await recordCommand(store, 'endpoint_test', subscription, processor)
      const view = testView(tested)
      if (values.json) printJson(view)
      else print(record(view))
      return view.status !== null && view.status >= 200 && view.status < 300 ? 0 : 1
    })
  },
})

const remove = command({
  about: 'Removes an endpoint. Its subscription and the events in it stay, and can be claimed.',
  flags: FLAGS,
  async run(values) {
    await inEndpoints(values, async ({ endpoints, processor, subscription, store }) => {
      if (!(await endpoints.remove(processor, subscription))) throw new CommandError(noEndpoint(subscription))
      await recordCommand(store, 'endpoint_remove', subscription, processor)
      if (values.json) printJson({ subscription })
      else print(`The endpoint of ${subscription} is removed.\n`)
    })
  },
})

export const endpoint = commandGroup(
  'Manages the URLs that events are delivered to',
  'An endpoint is the URL that the events of a subscription are delivered to, signed and in order.',
  { set: endpointSet, list, show, pause, resume, 'rotate-secret': rotateSecret, test, replay: endpointReplay, remove },
)

interface EndpointFlags {
  readonly account?: string
  readonly company?: string
  readonly subscription?: string
}

function inEndpoints<T>(values: EndpointFlags, work: (context: EndpointContext) => Promise<T>): Promise<T> {
  return withEndpoints(tenantOf(values), subscriptionOf(values), work)
}

function changing(
  action: AuditAction,
  about: string,
  change: (context: EndpointContext) => Promise<ChangedEndpoint | Missing>,
): Command {
  return command({
    about,
    flags: FLAGS,
    async run(values) {
      await inEndpoints(values, async (context) => {
        const changed = present(await change(context), context.subscription)
        await recordCommand(context.store, action, context.subscription, context.processor)
        printEndpoint(endpointView(changed, systemClock.now()), null, values.json)
      })
    },
  })
}

// `./intray retention preview`: what the rules would delete now.

import { loadConfig } from '../../../config.ts'
import type { Tenant } from '../../../model/principal.ts'
import type { PurgePosition } from '../../../model/retention-plan.ts'
import {
  RETENTION_KINDS,
  type Retention,
  type RetentionRule,
  RetentionRules,
  NO_RETENTION,
} from '../../../model/retention.ts'
import { isoTime, systemClock } from '../../../runtime/clock.ts'
import type { Store } from '../../../store/contract/store.ts'
import { command } from '../../command.ts'
import { JSON_LINES_FLAG, TENANT_FLAGS, tenantOf } from '../../flags.ts'
import { withStore } from '../../open.ts'
import { createProgress, printList } from '../../output.ts'
import { RULE_FLAGS, withFlags } from '../../retention-flags.ts'

const TENANTS = 100
/** Refusals and history entries of a tenant are counted up to here. */
const COUNTED = 100_000

interface Preview extends Tenant {
  messages: number
  rows: number
  held: number
  refusals: number
  history: number
  oldest: number | null
}

export const retentionPreview = command({
  about: `Shows what would be deleted now, for each tenant that would lose something or has messages that are held back. Deletes nothing. Reads
what is too old and nothing else. With other ages than those of the rules:

  ./intray retention preview --events 90d

Refusals and history entries are counted up to ${COUNTED}.`,
  flags: {
    account: { value: 'N', about: TENANT_FLAGS.account.about },
    company: { value: 'N', about: TENANT_FLAGS.company.about },
    ...RULE_FLAGS,
    ...JSON_LINES_FLAG,
  },
  async run(values) {
    const config = loadConfig(process.env)
    const only = values.account === undefined && values.company === undefined ? null : tenantOf(values)
    withFlags(NO_RETENTION, values)
    await withStore(async (store) => {
      const now = systemClock.now()
      const known = await store.retention.rules()
      const fallback = known.find(({ tenant }) => tenant === null) ?? { tenant: null, ...NO_RETENTION }
      const changed = [...known.filter(({ tenant }) => tenant !== null), fallback].map((rule): RetentionRule => {
        return { tenant: rule.tenant, ...withFlags(rule, values) }
      })
      const rules = new RetentionRules(changed, config.refusalsMaxAge)
      const progress = createProgress('preview')
      const found: Preview[] = []
      for (const tenant of only ? [only] : await tenantsOf(store)) {
        const one = await previewOf(store, tenant, rules.of(tenant), now, (text) => progress.say(text))
        if (one.rows + one.held + one.refusals + one.history > 0) found.push(one)
      }
      progress.end()
      printList(found, values.json === true, {
        jsonOf: (one) => ({
          account_id: one.accountId,
          company_id: one.companyId,
          messages: one.messages,
          events: one.rows,
          held: one.held,
          refusals: one.refusals,
          history: one.history,
          oldest: one.oldest === null ? null : isoTime(one.oldest),
        }),
        empty: 'Nothing is older than the rules allow.',
        columns: {
          ACCOUNT: ({ accountId }) => String(accountId),
          COMPANY: ({ companyId }) => String(companyId),
          MESSAGES: ({ messages }) => String(messages),
          EVENTS: ({ rows }) => String(rows),
          'HELD BACK': ({ held }) => String(held),
          REFUSALS: ({ refusals }) => String(refusals),
          HISTORY: ({ history }) => String(history),
          OLDEST: ({ oldest }) => (oldest === null ? '-' : isoTime(oldest)),
        },
      })
    }, config)
  },
})

async function tenantsOf({ retention }: Store): Promise<Tenant[]> {
  const found = new Map<string, Tenant>()
  for (const kind of RETENTION_KINDS) {
    for (let after: Tenant | null = null; ; ) {
      const page: Tenant[] = await retention.tenants(kind, after, TENANTS)
      for (const tenant of page) found.set(`${tenant.companyId}:${tenant.accountId}`, tenant)
      if (page.length < TENANTS) break
      after = page.at(-1)!
    }
  }
  return Array.from(found.values())
}

async function previewOf(
  { retention }: Store,
  tenant: Tenant,
  ages: Retention,
  now: number,
  say: (text: string) => void,
): Promise<Preview> {
  const found: Preview = { ...tenant, messages: 0, rows: 0, held: 0, refusals: 0, history: 0, oldest: null }
  const see = (at: number | null) => {
    if (at !== null) found.oldest = Math.min(found.oldest ?? at, at)
  }
  if (ages.events !== null) {
    const { purgesUnprocessed } = ages
    for (let after: PurgePosition | null = null; ; ) {
      const request = { tenant, before: now - ages.events, now, purgesUnprocessed, after, dryRun: true }
      const step = await retention.purgeStep(request)
      found.messages += step.messages
      found.rows += step.rows
      found.held += step.held
      see(step.oldest)
      say(`${found.messages} messages of account ${tenant.accountId}, company ${tenant.companyId}`)
      after = step.next
      if (after === null) break
    }
  }
  for (const kind of ['refusals', 'history'] as const) {
    const age = ages[kind]
    if (age === null) continue
    const { count, oldest } = await retention.countOld(kind, tenant, now - age, COUNTED)
    found[kind] = count
    see(oldest)
  }
  return found
}

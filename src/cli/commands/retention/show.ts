// `./intray retention show`: the rules.

import { loadConfig } from '../../../config.ts'
import { NO_RETENTION, type RetentionSettings } from '../../../model/retention.ts'
import type { Tenant } from '../../../model/principal.ts'
import { formatDuration } from '../../../runtime/duration.ts'
import { command } from '../../command.ts'
import { JSON_FLAG } from '../../flags.ts'
import { withStore } from '../../open.ts'
import { print, printJson, table } from '../../output.ts'
import { ruleJson } from '../../retention-flags.ts'

export const retentionShow = command({
  about: `Shows the rules: the default of all tenants, and what single tenants have in its place. What even the default does not set is
kept for ever; of refusals, INTRAY_REFUSALS_MAX_AGE applies.`,
  flags: JSON_FLAG,
  async run(values) {
    const config = loadConfig(process.env)
    await withStore(async (store) => {
      const rules = await store.retention.rules()
      const fallback = fallbackJson(
        rules.find(({ tenant }) => tenant === null),
        config.refusalsMaxAge,
      )
      const ofTenants = rules.filter((rule): rule is RetentionSettings & { tenant: Tenant } => rule.tenant !== null)
      const tenants = ofTenants.map((rule) => ruleJson(rule.tenant, rule))
      if (values.json) {
        printJson({ default: fallback, tenants })
        return
      }
      const rowOf = (tenant: string, rule: ReturnType<typeof ruleJson>) => {
        return [tenant, rule.events, rule.refusals, rule.history, rule.unprocessed]
      }
      const rows = ofTenants.map((rule, n) => {
        return rowOf(`account ${rule.tenant.accountId}, company ${rule.tenant.companyId}`, tenants[n]!)
      })
      print(table(['TENANT', 'EVENTS', 'REFUSALS', 'HISTORY', 'UNPROCESSED'], [rowOf('all others', fallback), ...rows]))
    }, config)
  },
})

/** What the default does not set has no other default behind it. */
function fallbackJson(rule: RetentionSettings = NO_RETENTION, refusalsMaxAgeMs: number) {
  const { events, refusals, history, unprocessed } = rule
  const shown = {
    events: events ?? 'never',
    refusals,
    history: history ?? 'never',
    unprocessed: unprocessed ?? 'keep',
  } as const
  return ruleJson(null, shown, refusals === null ? formatDuration(refusalsMaxAgeMs) : undefined)
}

// `./intray retention set`: changes the rule of a tenant, or the default.

import { NO_RETENTION } from '../../../model/retention.ts'
import { recordCommand } from '../../audit.ts'
import { command, UsageError } from '../../command.ts'
import { JSON_FLAG, TENANT_FLAGS, tenantOf } from '../../flags.ts'
import { withStore } from '../../open.ts'
import { print, printJson, record } from '../../output.ts'
import { RULE_FLAGS, ruleJson, withFlags } from '../../retention-flags.ts'

export const retentionSet = command({
  about: `Changes how long the data of a tenant is kept, or of all tenants without a rule of their own. A flag that is left out changes
nothing.

  ./intray retention set --default --events 365d
  ./intray retention set --account 7 --company 42 --events 30d --refusals 7d --unprocessed purge

Look first at what would go: ./intray retention preview --events 30d. What has gone comes back only from a backup.`,
  flags: {
    account: { value: 'N', about: TENANT_FLAGS.account.about },
    company: { value: 'N', about: TENANT_FLAGS.company.about },
    default: { about: 'The default, instead of a tenant.' },
    ...RULE_FLAGS,
    ...JSON_FLAG,
  },
  async run(values) {
    const isDefault = values.default === true
    if (isDefault && (values.account !== undefined || values.company !== undefined)) {
      throw new UsageError('Give either --default, or --account N and --company N.')
    }
    if (Object.keys(RULE_FLAGS).every((name) => values[name as keyof typeof RULE_FLAGS] === undefined)) {
      throw new UsageError(`Nothing to change. Give one of --${Object.keys(RULE_FLAGS).join(', --')}.`)
    }
    const tenant = isDefault ? null : tenantOf(values)
    withFlags(NO_RETENTION, values)
    await withStore(async (store) => {
      const before = (await store.retention.rules()).find((rule) =>
        tenant === null
          ? rule.tenant === null
          : rule.tenant?.accountId === tenant.accountId && rule.tenant.companyId === tenant.companyId,
      )
      const settings = withFlags(before ?? NO_RETENTION, values)
      await store.retention.setRule({ tenant, ...settings })
      const shown = ruleJson(tenant, settings)
      const { events, refusals, history, unprocessed } = shown
      const text = `events ${events}, refusals ${refusals}, history ${history}, unprocessed ${unprocessed}`
      await recordCommand(store, 'retention_set', text, tenant)
      if (values.json) printJson(shown)
      else print(record(shown))
    })
  },
})

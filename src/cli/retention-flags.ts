// What the commands of retention share: flags, how a rule is shown, and the rules with those flags applied.

import type { Tenant } from '../model/principal.ts'
import { MAX_RETENTION_DAYS, type RetentionAge, type RetentionSettings } from '../model/retention.ts'
import { oneOf, type Parameter } from '../runtime/parameter.ts'
import type { Flags } from './command.ts'
import { flag } from './flags.ts'

const AGE = `a number of days such as 365d, never, or default`

export const RULE_FLAGS = {
  events: { value: 'AGE', about: `Keep messages this long: ${AGE}.` },
  refusals: { value: 'AGE', about: `Keep refused requests this long: ${AGE}.` },
  history: { value: 'AGE', about: `Keep the processing histories of messages this long: ${AGE}.` },
  unprocessed: {
    value: 'WHAT',
    about: 'Messages that some subscription has not processed: keep, purge or default [keep].',
  },
} as const satisfies Flags

type Given = { readonly [N in keyof typeof RULE_FLAGS]?: string }

/** The settings of a rule with what the flags change. */
export function withFlags(settings: RetentionSettings, given: Given): RetentionSettings {
  const read = (name: 'events' | 'refusals' | 'history') => {
    const age = flag(name, given[name], retentionAge)
    return age === undefined ? settings[name] : age === 'default' ? null : age
  }
  const what = flag('unprocessed', given.unprocessed, oneOf<'keep' | 'purge' | 'default'>('keep', 'purge', 'default'))
  return {
    events: read('events'),
    refusals: read('refusals'),
    history: read('history'),
    unprocessed: what === undefined ? settings.unprocessed : what === 'default' ? null : what,
  }
}

const retentionAge: Parameter<RetentionAge | 'default'> = (text) => {
  if (text === 'never' || text === 'default') return text
  const days = Number(/^(\d{1,5})d$/.exec(text)?.[1])
  if (!(days >= 1 && days <= MAX_RETENTION_DAYS)) {
    throw new Error(`must be from 1d to ${MAX_RETENTION_DAYS}d in whole days, never, or default`)
  }
  return days
}

export const ageText = (age: RetentionAge | null): string => (typeof age === 'number' ? `${age}d` : (age ?? 'default'))

/** `refusalsText`: instead of the rule's, where a setting is in force. */
export function ruleJson(tenant: Tenant | null, rule: RetentionSettings, refusalsText = ageText(rule.refusals)) {
  const { events, history, unprocessed } = rule
  const ofTenant = tenant === null ? {} : { account_id: tenant.accountId, company_id: tenant.companyId }
  const ages = { events: ageText(events), refusals: refusalsText, history: ageText(history) }
  return { ...ofTenant, ...ages, unprocessed: unprocessed ?? 'default' }
}

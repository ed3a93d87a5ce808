// `./intray token list`: the tokens of all tenants, or those that match.

import { type TokenRecord, type TokenState, tokenState } from '../../../model/token.ts'
import { isoTime, systemClock } from '../../../runtime/clock.ts'
import { parseDuration } from '../../../runtime/duration.ts'
import { isoMoment, wholeNumber } from '../../../runtime/parameter.ts'
import { formatRate } from '../../../runtime/rate.ts'
import type { Store } from '../../../store/contract/store.ts'
import type { TokenFilter } from '../../../store/contract/tokens.ts'
import { command, UsageError } from '../../command.ts'
import { flag, JSON_LINES_FLAG } from '../../flags.ts'
import { withStore } from '../../open.ts'
import { printJson, printList } from '../../output.ts'
import { tokenJson } from '../../token-json.ts'

/** The flag of each state. */
const STATES = { active: 'active', inactive: 'disabled', expired: 'expired' } as const

export const tokenList = command({
  about:
    'Lists the tokens of all tenants, or those that match all flags, without their secrets. Shows key id, state, tenant, scope, limits, last use, label.',
  flags: {
    account: { value: 'N', about: 'Only tokens of this account.' },
    company: { value: 'N', about: 'Only tokens of this company.' },
    scope: { value: 'S', about: 'Only tokens of this scope.' },
    active: { about: 'Only tokens that work.' },
    inactive: { about: 'Only tokens that were disabled.' },
    expired: { about: 'Only tokens that have expired.' },
    'unused-since': {
      value: 'T',
      about:
        'Only tokens not used since then: an ISO time such as 2027-01-31T00:00:00Z, or a duration such as 30d. A token that was never used counts from when it was made.',
    },
    ...JSON_LINES_FLAG,
  },
  async run(values) {
    const now = systemClock.now()
    const number = wholeNumber(1, Number.MAX_SAFE_INTEGER)
    const filter: TokenFilter = {
      accountId: flag('account', values.account, number),
      companyId: flag('company', values.company, number),
      scope: values.scope,
      state: stateOf(values),
      unusedSince: flag('unused-since', values['unused-since'], (text) => moment(text, now)),
    }
    await withStore(async (store) => {
      if (!values.json) return printTable(store, filter, now)
      await eachPage(store, filter, now, (page) => {
        for (const one of page) printJson(tokenJson(one))
      })
    })
  },
})

async function printTable(store: Store, filter: TokenFilter, now: number): Promise<void> {
  const found: TokenRecord[] = []
  await eachPage(store, filter, now, (page) => found.push(...page))
  const time = (ms: number | null) => (ms === null ? '-' : isoTime(ms))
  const isFiltered = Object.values(filter).some((value) => value !== undefined)
  printList(found, false, {
    jsonOf: tokenJson,
    empty: isFiltered
      ? 'No token matches.'
      : 'No tokens yet. Create one: ./intray token create --account 1 --company 1 --scope cf',
    columns: {
      'KEY ID': ({ keyId }) => keyId,
      STATE: (one) => tokenState(one, now),
      ACCOUNT: ({ accountId }) => String(accountId),
      COMPANY: ({ companyId }) => String(companyId),
      SCOPE: ({ scope }) => scope || '-',
      'RATE LIMIT': ({ rateLimit: limit }) => (limit === null ? '-' : formatRate(limit)),
      EXPIRES: ({ expiresAt }) => time(expiresAt),
      'LAST USED': ({ lastUsedAt }) => time(lastUsedAt),
      LABEL: ({ label }) => label,
    },
  })
}

async function eachPage(
  store: Store,
  filter: TokenFilter,
  now: number,
  use: (page: readonly TokenRecord[]) => void,
): Promise<void> {
  for (let after: TokenRecord | undefined; ; ) {
    const page = await store.tokens.list({ filter, now, after })
    use(page)
    after = page.at(-1)
    if (!after) break
  }
}

function stateOf(given: Readonly<Partial<Record<keyof typeof STATES, boolean>>>): TokenState | undefined {
  const flags = Object.keys(STATES).filter((name) => given[name as keyof typeof STATES]) as (keyof typeof STATES)[]
  if (flags.length > 1) throw new UsageError(`Give one of --${Object.keys(STATES).join(', --')}.`)
  return flags[0] && STATES[flags[0]]
}

function moment(text: string, now: number): number {
  const ms = parseDuration(text)
  if (ms !== null) return now - ms
  try {
    return isoMoment(text)
  } catch (error) {
    throw new Error(`${(error as Error).message}, or a duration such as 30d`)
  }
}

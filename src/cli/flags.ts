// Flags that several commands have, and readers of flag values. A value of the wrong form is a usage error that names the flag.

import type { Tenant } from '../model/principal.ts'
import { parseDuration } from '../runtime/duration.ts'
import { type Parameter, wholeNumber } from '../runtime/parameter.ts'
import { type Flags, UsageError } from './command.ts'

export const MAX_ID = 999_999_999_999_999

export const TENANT_FLAGS = {
  account: { value: 'N', about: 'The account of the tenant: a whole number from 1.', isRequired: true },
  company: { value: 'N', about: 'The company of the tenant.', isRequired: true },
} as const satisfies Flags
export const SUBSCRIPTION_FLAG = {
  subscription: { value: 'S', about: 'The subscription [default].' },
} as const satisfies Flags
export const RAW_FLAG = {
  raw: { about: "Write the payload's bytes to stdout, exactly as sent, and nothing else." },
} as const satisfies Flags
export const JSON_FLAG = { json: { about: 'Print one JSON object.' } } as const satisfies Flags
export const JSON_LINES_FLAG = { json: { about: 'Print one JSON object a line.' } } as const satisfies Flags

/** Undefined if the flag was not given. */
export function flag<T>(name: string, text: string | undefined, read: Parameter<T>): T | undefined {
  if (text === undefined) return undefined
  try {
    return read(text)
  } catch (error) {
    throw new UsageError(`--${name} ${(error as Error).message}.`)
  }
}

export function tenantOf(values: { readonly account?: string; readonly company?: string }): Tenant {
  const number = wholeNumber(1, Number.MAX_SAFE_INTEGER)
  const accountId = flag('account', values.account, number)
  const companyId = flag('company', values.company, number)
  if (accountId === undefined || companyId === undefined) {
    throw new UsageError('The tenant is missing. Give --account N and --company N.')
  }
  return { accountId, companyId }
}

export function eventId(text: string | undefined): number {
  const id = text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : 0
  if (id === 0) throw new UsageError('ID must be the number of an event.')
  return id
}

/** A duration between two numbers of seconds, in milliseconds. */
export const secondsBetween =
  ({ min, max }: { readonly min: number; readonly max: number }): Parameter<number> =>
  (text) => {
    const ms = parseDuration(text)
    if (ms === null || ms < 1000 * min || ms > 1000 * max) {
      throw new Error(`must be a duration from ${min}s to ${max}s, for example 30s, 5m or 1h`)
    }
    return ms
  }

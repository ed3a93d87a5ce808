// Reads the flags of a command. A flag that is unknown or has a value of the wrong form is a usage error that names it.

import { parseArgs, type ParseArgsConfig } from 'node:util'
import type { Tenant } from '../model/principal.ts'
import { parseDuration } from '../runtime/duration.ts'
import { nearest } from '../runtime/nearest.ts'
import { type Parameter, wholeNumber } from '../runtime/parameter.ts'
import { UsageError } from './command.ts'
import { printable } from './output.ts'

export const MAX_ID = 999_999_999_999_999

export const TENANT_FLAGS = { account: { type: 'string' }, company: { type: 'string' } } as const
export const JSON_FLAG = { json: { type: 'boolean' } } as const

type Options = NonNullable<ParseArgsConfig['options']>

/** The values of flags, and the arguments beside them: as many as `names` has. */
export function parseFlags<const O extends Options>(args: readonly string[], options: O, ...names: readonly string[]) {
  const { values, positionals } = parseAll(args, options)
  if (positionals.length > names.length) {
    throw new UsageError(`Unexpected argument "${printable(positionals[names.length]!)}".`)
  }
  if (positionals.length < names.length) throw new UsageError(`${names[positionals.length]} is missing.`)
  return { values, positionals }
}

/** The same with any number of arguments. */
export function parseAll<const O extends Options>(args: readonly string[], options: O) {
  try {
    return parseArgs({ args: [...args], allowPositionals: true, options })
  } catch (error) {
    throw flagError(error, Object.keys(options))
  }
}

/** Node's own sentences explain its parser; these name the flag. */
function flagError(error: unknown, known: readonly string[]): unknown {
  const { code = '', message = '' } = error as { code?: string; message?: string }
  if (!code.startsWith('ERR_PARSE_ARGS')) return error
  const [, flag = ''] = /'(-[^\s'=]*)/.exec(message) ?? []
  if (code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION') {
    const near = flag.startsWith('--') ? nearest(flag.slice(2), known) : null
    return new UsageError(`There is no flag ${printable(flag)}.${near === null ? '' : ` Did you mean --${near}?`}`)
  }
  const takesNone = message.includes('does not take an argument')
  return new UsageError(`${printable(flag)} ${takesNone ? 'takes no value' : 'needs a value'}.`)
}

/** Undefined where the flag was not given. */
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

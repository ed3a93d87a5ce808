// What the commands of hooks share: hooks with the key of secrets, the address that is printed, and the files they read.

import { readFileSync, statSync } from 'node:fs'
import { type FoundTenantHook, TenantHooks } from '../auth/tenant-hooks.ts'
import { type Config, loadConfig } from '../config.ts'
import { MAX_RECIPE_BYTES, parseCustomRecipe } from '../hooks/custom-recipe.ts'
import { hookDetail } from '../hooks/hook-view.ts'
import type { HookSecrets } from '../model/hook.ts'
import { secretProblem } from '../model/recipes/hook-secret.ts'
import type { Recipe } from '../model/recipes/recipe.ts'
import type { TokenRecord } from '../model/token.ts'
import { hasSealedSecrets } from '../processing/push/pushing.ts'
import { systemClock } from '../runtime/clock.ts'
import { Secrets } from '../runtime/secrets.ts'
import type { Store } from '../store/contract/store.ts'
import { secretsKeyFile } from '../store/open.ts'
import { CommandError, type Flags, UsageError } from './command.ts'
import { printable } from './output.ts'
import { configuredAddress } from './server-address.ts'

export const SECRET_FLAGS = {
  'secret-file': { value: 'FILE', about: 'The secret of the vendor, from the first line of a file.' },
  'secret-stdin': { about: 'The secret of the vendor, from the first line of stdin.' },
} as const satisfies Flags

/** As in the database of the settings. */
export function hooksOf(store: Store, config: Config = loadConfig(process.env)): TenantHooks {
  const hasSealed = () => hasSealedSecrets(store)
  const { tokens, hooks } = store
  return new TenantHooks({ tokens, hooks, secrets: secretsOf(config), hasSealed, clock: systemClock })
}

export function secretsOf({ secretsKey, databaseUrl }: Pick<Config, 'secretsKey' | 'databaseUrl'>): Secrets {
  return new Secrets({ key: secretsKey, file: secretsKeyFile(databaseUrl) })
}

export async function knownHook(hooks: TenantHooks, keyId: string): Promise<FoundTenantHook> {
  const found = await hooks.find(null, keyId)
  if (found) return found
  throw new CommandError(`There is no hook with key id ${printable(keyId)}. './intray hook list' lists all hooks.`)
}

/** With its address, as the settings say it; null if the key of secrets is missing or another one. */
export function hookJson(found: FoundTenantHook, opened: HookSecrets | null) {
  const config = loadConfig(process.env)
  const publicUrl = config.publicUrl ?? configuredAddress(config)
  const { accountId: account_id, companyId: company_id } = found.record
  const { key_id, ...detail } = hookDetail({ ...found, opened, publicUrl, now: systemClock.now() })
  return { key_id, account_id, company_id, ...detail }
}

/** Undefined without a flag. */
export function secretOf(values: {
  readonly 'secret-file'?: string
  readonly 'secret-stdin'?: boolean
}): string | undefined {
  const { 'secret-file': file, 'secret-stdin': fromStdin } = values
  if (file === undefined && !fromStdin) return undefined
  if (file !== undefined && fromStdin) throw new UsageError('Give --secret-file or --secret-stdin, not both.')
  const text = readText(file ?? 0, file ?? 'stdin', MAX_SECRET_FILE_BYTES)
  const secret = text.split('\n', 1)[0]!.trim()
  if (secret === '') throw new UsageError('The secret is empty.')
  return secret
}

/** Before it is stored. */
export function checkSecret({ signature }: Pick<Recipe, 'signature'>, secret: string | undefined): void {
  const wrong = secret === undefined ? null : secretProblem(signature, secret)
  if (wrong) throw new UsageError(wrong)
}

const MAX_SECRET_FILE_BYTES = 64 * 1024

/** The recipe in a file; a sentence for each of its problems otherwise. */
export function readRecipeFile(file: string) {
  const read = parseCustomRecipe(readText(file, file, MAX_RECIPE_BYTES))
  if ('recipe' in read) return read
  const lines = read.problems.map(
    ({ path, message }) => `  ${path === '' ? '' : `${printable(path)}: `}${printable(message)}`,
  )
  throw new CommandError(`${file} is no recipe:\n${lines.join('\n')}`)
}

export function readText(source: string | 0, name: string, maxBytes: number): string {
  return readBytes(source, name, maxBytes).toString('utf8')
}

export function readBytes(source: string | 0, name: string, maxBytes: number): Buffer {
  try {
    if (source !== 0 && statSync(source).size > maxBytes) throw new Error(`it is larger than ${maxBytes} bytes`)
    return readFileSync(source)
  } catch (error) {
    throw new CommandError(`${name} cannot be read: ${(error as Error).message}.`)
  }
}

export type HookJson = ReturnType<typeof hookJson>

/** For a list, without the address. */
export function tenantText({ accountId, companyId }: TokenRecord): string {
  return `${accountId}/${companyId}`
}

// Hooks of a test service, made by the code that the console and commands use.

import { issueHook } from '../../src/auth/hook-lifecycle.ts'
import { newHookSecret } from '../../src/auth/tenant-hooks.ts'
import { verifyTokenOf } from '../../src/hooks/challenge.ts'
import { parseCustomRecipe } from '../../src/hooks/custom-recipe.ts'
import { HOOK_PATH } from '../../src/model/hook.ts'
import { newestRecipe } from '../../src/model/recipes/built-in.ts'
import { needsSecret, recipeRef } from '../../src/model/recipes/recipe.ts'
import type { TokenRecord } from '../../src/model/token.ts'
import { SecretBox } from '../../src/runtime/secret-box.ts'
import type { TestApp } from './app.ts'

/** INTRAY_SECRETS_KEY of test services. */
export const TEST_SECRETS_KEY = Buffer.alloc(32, 7)

export interface HookOptions {
  readonly accountId?: number
  readonly companyId?: number
  readonly scope?: string
  readonly secret?: string | null
  readonly expiresAt?: number | null
  readonly rateLimit?: TokenRecord['rateLimit']
  readonly maxBody?: number | null
}

export interface TestHook {
  readonly hookId: string
  readonly keyId: string
  readonly path: string
  readonly secret: string
  readonly verifyToken: string
}

/** Of a built-in recipe by name, or of a custom one by the text of its file. */
export async function createHook(
  app: Pick<TestApp, 'store'>,
  recipe: string,
  options: HookOptions = {},
): Promise<TestHook> {
  const { accountId = 7, companyId = 42, expiresAt = null, rateLimit = null, maxBody = null } = options
  const builtIn = newestRecipe(recipe)
  const custom = builtIn === null ? parseCustomRecipe(recipe) : null
  if (custom && 'problems' in custom) throw new Error(JSON.stringify(custom.problems))
  const used = builtIn ?? custom!.recipe
  const secret = options.secret ?? newHookSecret(used)
  const terms = {
    recipe: recipeRef(used),
    definition: custom?.definition ?? null,
    scope: options.scope ?? 'hook',
    label: '',
    expiresAt,
    rateLimit,
    maxBody,
    secret: needsSecret(used) && options.secret !== null ? secret : null,
  }
  const box = new SecretBox(TEST_SECRETS_KEY)
  const { record, opened } = await issueHook(app.store.hooks, box, { accountId, companyId }, terms, Date.now())
  return {
    hookId: opened.hookId,
    keyId: record.keyId,
    path: HOOK_PATH + opened.hookId,
    secret,
    verifyToken: verifyTokenOf(opened.hookId),
  }
}

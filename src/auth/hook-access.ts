// What a hook's requests are checked and read with: its recipe, its secrets, its limit. Kept with the grant of its token, which is
// replaced when the token or anything of the hook changes.

import { type HookSecrets, validSecrets } from '../model/hook.ts'
import type { Problem } from '../model/errors.ts'
import type { Tenant } from '../model/principal.ts'
import { builtInRecipe } from '../model/recipes/built-in.ts'
import { customDigest, needsSecret, type Recipe, storedRecipe } from '../model/recipes/recipe.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Secrets } from '../runtime/secrets.ts'
import type { HookStore } from '../store/contract/hooks.ts'
import { openSecrets } from './hook-lifecycle.ts'
import type { Grant } from './principals.ts'

export interface HookAccess {
  /** Such as `telegram/1`. */
  readonly ref: string
  readonly recipe: Recipe
  readonly firstKeyId: string
  readonly maxBody: number | null
  /** Null if the recipe needs none. */
  readonly opened: HookSecrets | null
}

export type FoundHook = HookAccess | { readonly problem: Problem }

/** A hook whose secrets do not open is tried again after this: its key may have been put back. */
const RETRY_MS = 5000

const UNREACHABLE: FoundHook = { problem: { code: 'storage_unavailable' } }
const SEALED: FoundHook = { problem: { code: 'secrets_unavailable' } }
const NO_RECIPE: FoundHook = {
  problem: {
    code: 'internal_error',
    message: 'The recipe of this hook is one of a newer version of Intray. Upgrade it.',
  },
}

export interface HookAccessesOptions {
  readonly hooks: Pick<HookStore, 'find' | 'recipe'>
  readonly secrets: Secrets
  readonly clock: Clock
  readonly onTrouble: (doing: string, error: unknown) => void
}

interface Known {
  readonly found: FoundHook
  readonly at: number
}

export class HookAccesses {
  readonly #options: HookAccessesOptions
  readonly #known = new WeakMap<Grant, Known>()

  constructor(options: HookAccessesOptions) {
    this.#options = options
  }

  /** Synchronous for a hook that is known. */
  of(grant: Grant): FoundHook | Promise<FoundHook> {
    const known = this.#known.get(grant)
    const now = this.#options.clock.now()
    if (known && (!('problem' in known.found) || now < known.at + RETRY_MS)) return known.found
    return this.#read(grant).then(
      (found) => {
        this.#known.set(grant, { found, at: now })
        return found
      },
      (error: unknown) => {
        this.#options.onTrouble('look up a hook', error)
        return UNREACHABLE
      },
    )
  }

  /** The secrets that are valid now, the newest first. */
  validSecrets({ opened }: HookAccess): string[] {
    return opened === null ? [] : validSecrets(opened, this.#options.clock.now())
  }

  async #read({ principal, recipe: ref }: Grant): Promise<FoundHook> {
    const { hooks, secrets, onTrouble } = this.#options
    const hook = await hooks.find(principal.keyId)
    const recipe = ref === null ? null : await findRecipe(hooks, principal, ref)
    if (hook === null || ref === null || recipe === null) return NO_RECIPE
    const { firstKeyId, maxBody } = hook
    if (!needsSecret(recipe)) return { ref, recipe, firstKeyId, maxBody, opened: null }
    try {
      return { ref, recipe, firstKeyId, maxBody, opened: openSecrets(secrets.box(), hook) }
    } catch (error) {
      onTrouble(`open the secrets of hook ${principal.keyId}`, error)
      return SEALED
    }
  }
}

/** Null for one of a newer Intray. */
export async function findRecipe(
  hooks: Pick<HookStore, 'recipe'>,
  tenant: Tenant,
  ref: string,
): Promise<Recipe | null> {
  const digest = customDigest(ref)
  if (digest === null) return builtInRecipe(ref)
  const { accountId, companyId } = tenant
  const definition = await hooks.recipe({ accountId, companyId }, digest)
  return definition === null ? null : storedRecipe(digest, definition)
}

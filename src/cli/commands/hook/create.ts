// `./intray hook create`: makes a hook, and says what to paste where.

import { hookSecretToMake } from '../../../auth/tenant-hooks.ts'
import { MAX_LABEL } from '../../../auth/token-lifecycle.ts'
import { isScope } from '../../../model/principal.ts'
import { SECRET_PLACE } from '../../../hooks/hook-view.ts'
import { BUILT_IN_RECIPES, newestRecipe } from '../../../model/recipes/built-in.ts'
import { type Recipe, recipeRef } from '../../../model/recipes/recipe.ts'
import { systemClock } from '../../../runtime/clock.ts'
import { nearest } from '../../../runtime/nearest.ts'
import { wholeNumber } from '../../../runtime/parameter.ts'
import { recordCommand } from '../../audit.ts'
import { command, UsageError } from '../../command.ts'
import { flag, JSON_FLAG, TENANT_FLAGS, tenantOf } from '../../flags.ts'
import {
  checkSecret,
  type HookJson,
  hookJson,
  hooksOf,
  readRecipeFile,
  SECRET_FLAGS,
  secretOf,
} from '../../hook-store.ts'
import { withStore } from '../../open.ts'
import { print, printable, printJson, record } from '../../output.ts'
import { EXPIRES_FLAG, expiry, RATE_LIMIT, rateLimit } from '../../token-flags.ts'

const NAMES = BUILT_IN_RECIPES.map(({ name }) => name)
const BODY_LIMIT = wholeNumber(1024, 104_857_600)

export const hookCreate = command({
  about: `Creates a hook for one account and one company, and shows its address and what to do at the vendor.

  ./intray hook create --recipe telegram --account 1 --company 1
  ./intray hook create --recipe-file shop.yaml --account 1 --company 1

Where the vendor makes the secret, it may come later: ./intray hook rotate KEY_ID --secret-stdin. Until then, all requests are refused.
The printed address begins with INTRAY_PUBLIC_URL.`,
  flags: {
    recipe: { value: 'NAME', about: `How requests are read: ${NAMES.join(', ')}.` },
    'recipe-file': {
      value: 'FILE',
      about: 'A recipe of your own instead, in JSON or YAML (docs/sending/custom-recipes.md).',
    },
    ...TENANT_FLAGS,
    name: { value: 'TEXT', about: `A note for yourself, at most ${MAX_LABEL} characters.` },
    scope: { value: 'S', about: 'The scope of its events [the name of the recipe].' },
    ...SECRET_FLAGS,
    ...EXPIRES_FLAG,
    'rate-limit': RATE_LIMIT,
    'max-body': { value: 'BYTES', about: 'Its largest body, 1024 to 104857600 [INTRAY_MAX_BODY_BYTES].' },
    ...JSON_FLAG,
  },
  async run(values) {
    const now = systemClock.now()
    const tenant = tenantOf(values)
    const { recipe, definition } = chosenRecipe(values.recipe, values['recipe-file'])
    const label = (values.name ?? '').trim()
    const scope = (values.scope ?? recipe.name).trim()
    if (!isScope(scope))
      throw new UsageError('--scope takes 1 to 64 of a-z, 0-9, "_", ".", ":" and "-", starting with a letter or digit.')
    if (label.length > MAX_LABEL) throw new UsageError(`--name takes at most ${MAX_LABEL} characters.`)
    const given = secretOf(values)
    checkSecret(recipe, given)
    const made = given === undefined ? hookSecretToMake(recipe) : null
    const terms = {
      recipe: recipeRef(recipe),
      definition,
      scope,
      label,
      expiresAt: expiry(values.expires, now),
      rateLimit: rateLimit(values['rate-limit']),
      maxBody: flag('max-body', values['max-body'], BODY_LIMIT) ?? null,
      secret: given ?? made,
    }
    const json = await withStore(async (store) => {
      const issued = await hooksOf(store).issue(tenant, terms)
      await recordCommand(store, 'hook_create', issued.record.keyId, tenant)
      return hookJson({ ...issued, recipe }, issued.opened)
    })
    if (values.json) printJson({ ...json, secret: made })
    else printHook(json, made)
  },
})

function chosenRecipe(
  name: string | undefined,
  file: string | undefined,
): { readonly recipe: Recipe; readonly definition: string | null } {
  if ((name === undefined) === (file === undefined)) throw new UsageError('Give --recipe NAME or --recipe-file FILE.')
  if (file !== undefined) return readRecipeFile(file)
  const recipe = newestRecipe(name!)
  if (recipe) return { recipe, definition: null }
  const near = nearest(name!, NAMES)
  throw new UsageError(
    `There is no recipe ${printable(name!)}.${near === null ? '' : ` Did you mean ${near}?`} './intray hook recipes' lists all.`,
  )
}

/** `made`: the secret that Intray made. */
export function printHook({ setup, signature, secrets, ...json }: HookJson, made: string | null): void {
  const { url, verify_token: verifyToken, ...fields } = json
  print(record(fields))
  const valid = secrets?.length ?? 0
  if (signature?.needs_secret) print(`secrets         ${secrets === null ? 'sealed' : `${valid} valid`}\n`)
  if (url === null) {
    print('\nThe address does not open: the key of secrets is missing, or another one. ./intray doctor says more.\n')
    return
  }
  print(`\nThe address, which is a secret:\n\n  ${url}\n`)
  if (verifyToken !== null) print(`\nThe verify token:\n\n  ${verifyToken}\n`)
  if (made !== null) print(`\nThe secret, shown this once:\n\n  ${made}\n`)
  if (setup)
    print(
      `\nAt the vendor:\n${setup.steps.map((step) => `  - ${made === null ? step : step.replaceAll(SECRET_PLACE, made)}\n`).join('')}`,
    )
  if (signature?.needs_secret && valid === 0)
    print(
      `\nThe vendor makes the secret (${setup?.secret?.name ?? 'secret'}). Set it: ./intray hook rotate ${json.key_id} --secret-stdin\n`,
    )
}

// The hooks of a tenant: list, show, create, rotate, disable, enable; their latest deliveries; samples. The address of a hook may be
// all that protects it, so only admins see it. A secret is shown once, when Intray makes it.

import { type FoundTenantHook, newHookSecret } from '../../auth/tenant-hooks.ts'
import { MAX_LABEL } from '../../auth/token-lifecycle.ts'
import { parseCustomRecipe, MAX_RECIPE_BYTES } from '../../hooks/custom-recipe.ts'
import { hookDetail, hookView, recipeViews } from '../../hooks/hook-view.ts'
import type { HookSecrets } from '../../model/hook.ts'
import { hookDeliveryViews } from '../../model/hook-delivery-view.ts'
import type { Problem } from '../../model/errors.ts'
import { roleAllows } from '../../model/operator.ts'
import { isScope } from '../../model/principal.ts'
import { newestRecipe } from '../../model/recipes/built-in.ts'
import { secretProblem } from '../../model/recipes/hook-secret.ts'
import { CUSTOM, needsSecret, type Recipe, recipeRef } from '../../model/recipes/recipe.ts'
import { wholeNumber } from '../../runtime/parameter.ts'
import { parseRate } from '../../runtime/rate.ts'
import { SecretUnreadable } from '../../runtime/secret-box.ts'
import { SecretsKeyMissing } from '../../runtime/secrets.ts'
import { type Call, callerOf, jsonAnswer, operatorOf, type Outcome } from '../call.ts'
import { DEFAULT_LIMIT, limitParameter, pageOf } from '../paging.ts'
import { invalidRequest } from '../problem.ts'
import { withQuery } from '../query.ts'
import { sampleOperation } from './hook-samples.ts'
import type { ConsoleOptions } from './options.ts'
import { parseLifetime, withTextFields } from './text-fields.ts'
import { tokenCursor } from './tokens.ts'

/** Told at once, as of other commands. */
const MAX_PROBLEMS = 20
const NOT_FOUND: Problem = { code: 'not_found' }
const MAX_COMMAND_BYTES = 4096
/** As a JSON string, a recipe file may take two characters for one. */
const MAX_CREATE_BYTES = 2 * MAX_RECIPE_BYTES + MAX_COMMAND_BYTES
const BODY_LIMIT = wholeNumber(1024, 104_857_600)
const LIFE = 'takes 2s to 365d, for example 30m, 24h or 30d.'
const CREATE_FIELDS = [
  'recipe',
  'definition',
  'name',
  'scope',
  'secret',
  'expires_in',
  'rate_limit',
  'max_body_bytes',
] as const

type Given = Partial<Record<(typeof CREATE_FIELDS)[number], string>>

export function hookOperations(options: ConsoleOptions) {
  const { hooks, tokens, clock, publicUrl, publicAddress } = options

  const find = (call: Call): Promise<FoundTenantHook | null> => hooks.find(callerOf(call), call.params.key_id ?? '')

  const detailOf = (call: Call, found: FoundTenantHook, opened: HookSecrets | null) => {
    const isAdmin = roleAllows('admin', operatorOf(call).operator.role)
    const address = publicUrl ?? publicAddress(call.req)
    return hookDetail({ ...found, opened: isAdmin ? opened : null, publicUrl: address, now: clock.now() })
  }

  const listHooks = withQuery({ limit: limitParameter, cursor: tokenCursor }, async (call, query) => {
    const { limit = DEFAULT_LIMIT, cursor } = query
    const found = await hooks.list(callerOf(call), cursor ?? null, limit + 1)
    const { page, next } = pageOf(found, limit, ({ createdAt, keyId }) => `${createdAt}.${keyId}`)
    return jsonAnswer({ hooks: page.map((record) => hookView(record, clock.now())), next })
  })

  const showHook = withQuery({}, async (call) => {
    const found = await find(call)
    return found ? jsonAnswer({ hook: detailOf(call, found, hooks.open(found.hook)) }) : NOT_FOUND
  })

  const createHook = withTextFields(CREATE_FIELDS, MAX_CREATE_BYTES, (call, given) =>
    unlessSealed(async () => {
      const terms = termsOf(given, clock.now())
      if ('code' in terms) return terms
      const { recipe, shownSecret, ref, ...rest } = terms
      const { record, hook, opened } = await hooks.issue(callerOf(call), { ...rest, recipe: ref })
      call.exchange.auditTarget = record.keyId
      const detail = detailOf(call, { record, hook, recipe }, opened)
      return jsonAnswer({ hook: { ...detail, secret: shownSecret } })
    }),
  )

  /** `what`: `address` (a successor under another key id) or `secret` (a new one under the same address). */
  const rotateHook = withTextFields(['what', 'secret', 'overlap', 'expires_in'], MAX_COMMAND_BYTES, (call, given) =>
    unlessSealed(async () => {
      const [overlapMs, lifeMs] = [parseLifetime(given.overlap), parseLifetime(given.expires_in)]
      if (overlapMs === null || lifeMs === null) return invalidRequest(`overlap and expires_in ${LIFE}`)
      const found = await find(call)
      if (!found) return NOT_FOUND
      if (given.what === 'address') {
        const expiresAt = lifeMs === undefined ? undefined : clock.now() + lifeMs
        return newAddress(call, found, { overlapMs: overlapMs ?? null, expiresAt })
      }
      if (given.what !== 'secret') return invalidRequest('what takes address or secret.')
      return newSecret(call, found, given.secret, overlapMs ?? null)
    }),
  )

  const newAddress = async (
    call: Call,
    found: FoundTenantHook,
    terms: { overlapMs: number | null; expiresAt: number | undefined },
  ): Promise<Outcome> => {
    const made = await hooks.rotateAddress(found.record, terms)
    if ('successor' in made)
      return invalidRequest(`This hook was rotated already. Rotate its successor instead: ${made.successor}.`)
    if ('hasExpired' in made)
      return invalidRequest('This hook has expired, and its successor would be expired too. Send expires_in.')
    const { record, hook, opened } = made
    const detail = detailOf(call, { record, hook, recipe: found.recipe }, opened)
    return jsonAnswer({ hook: { ...detail, secret: null }, in_force: await tokens.inEffect() })
  }

  const newSecret = async (
    call: Call,
    { record, recipe }: FoundTenantHook,
    given: string | undefined,
    overlapMs: number | null,
  ): Promise<Outcome> => {
    if (recipe === null || !needsSecret(recipe))
      return invalidRequest('This hook has no secret: its address is the secret. Rotate the address.')
    const wrong = given === undefined ? null : secretProblem(recipe.signature, given)
    if (wrong) return invalidRequest(wrong)
    const secret = given ?? newHookSecret(recipe)
    const changed = await hooks.rotateSecret(record.keyId, secret, overlapMs)
    if (!changed) return NOT_FOUND
    const detail = detailOf(call, { record: changed.record, hook: changed.hook, recipe }, changed.opened)
    const shown = given === undefined ? secret : null
    return jsonAnswer({ hook: { ...detail, secret: shown }, in_force: await tokens.inEffect() })
  }

  const setActive = (isActive: boolean) =>
    withQuery({}, async (call) => {
      const found = await find(call)
      const changed = found && (await hooks.setActive(found.record.keyId, isActive))
      if (!changed) return NOT_FOUND
      return jsonAnswer({ hook: hookView(changed, clock.now()), in_force: await tokens.inEffect() })
    })

  const hookDeliveries = withQuery({}, async (call) => {
    const found = await find(call)
    if (!found) return NOT_FOUND
    return jsonAnswer({
      deliveries: hookDeliveryViews(await hooks.deliveries(callerOf(call), found.record.keyId)),
    })
  })

  return {
    listHooks,
    showHook,
    createHook,
    rotateHook,
    disableHook: setActive(false),
    enableHook: setActive(true),
    hookDeliveries,
    sendHookSample: sampleOperation(options, find),
    listRecipes: withQuery({}, () => jsonAnswer({ recipes: recipeViews() })),
  }
}

/** A missing or wrong key of secrets is a failure of the service. */
async function unlessSealed(work: () => Promise<Outcome>): Promise<Outcome> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof SecretsKeyMissing) return { code: 'secrets_unavailable', message: error.message }
    if (error instanceof SecretUnreadable) return { code: 'secrets_unavailable' }
    throw error
  }
}

interface Chosen {
  readonly recipe: Recipe
  readonly definition: string | null
  /** Whether the vendor makes the secret, so that it may come later. */
  readonly isGiven: boolean
}

function recipeOf({ recipe: name = '', definition }: Given): Chosen | Problem {
  if (name === CUSTOM) {
    if (definition === undefined) return invalidRequest('A custom hook needs definition: the text of the recipe file.')
    const read = parseCustomRecipe(definition)
    if ('recipe' in read) return { ...read, isGiven: false }
    const fields = read.problems
      .slice(0, MAX_PROBLEMS)
      .map(({ path, message }) => ({ path: `/definition${path}`, code: 'invalid_recipe', message }))
    return { code: 'invalid_payload', fields }
  }
  const recipe = newestRecipe(name.split('/', 1)[0]!)
  if (!recipe || (name.includes('/') && recipeRef(recipe) !== name))
    return invalidRequest('recipe takes a name of GET /v1/console/recipes, or custom.')
  if (definition !== undefined) return invalidRequest('definition belongs to the recipe custom.')
  return { recipe, definition: null, isGiven: recipe.guide.secret?.from === 'vendor' }
}

function termsOf(given: Given, now: number) {
  const chosen = recipeOf(given)
  if ('code' in chosen) return chosen
  const { recipe, definition, isGiven } = chosen
  const { scope = recipe.name, name: label = '' } = given
  if (!isScope(scope)) return invalidRequest('scope takes 1 to 64 of a-z, 0-9, "_", ".", ":" and "-".')
  if (label.length > MAX_LABEL) return invalidRequest(`name takes at most ${MAX_LABEL} characters.`)
  const lifeMs = parseLifetime(given.expires_in)
  if (lifeMs === null) return invalidRequest(`expires_in ${LIFE}`)
  const wrong = given.secret === undefined ? null : secretProblem(recipe.signature, given.secret)
  if (wrong) return invalidRequest(wrong)
  const made = given.secret === undefined && needsSecret(recipe) && !isGiven ? newHookSecret(recipe) : null
  try {
    return {
      recipe,
      definition,
      ref: recipeRef(recipe),
      scope,
      label,
      expiresAt: lifeMs === undefined ? null : now + lifeMs,
      rateLimit: given.rate_limit === undefined ? null : parseRate(given.rate_limit),
      maxBody: given.max_body_bytes === undefined ? null : BODY_LIMIT(given.max_body_bytes),
      secret: given.secret ?? made,
      shownSecret: made,
    }
  } catch (error) {
    return invalidRequest(`rate_limit or max_body_bytes ${(error as Error).message}.`)
  }
}

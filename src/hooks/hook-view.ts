// JSON view of a hook for the console and commands: what it is, where it is, and what to do at the vendor.

import { HOOK_PATH, type HookRecord, type HookSecrets } from '../model/hook.ts'
import { BUILT_IN_RECIPES, builtInRecipe } from '../model/recipes/built-in.ts'
import { needsSecret, type Recipe, recipeRef } from '../model/recipes/recipe.ts'
import { type TokenRecord, tokenState } from '../model/token.ts'
import { isoTime } from '../runtime/clock.ts'
import { formatRate } from '../runtime/rate.ts'
import { verifyTokenOf } from './challenge.ts'
import { sampleOf } from './samples.ts'

const time = (ms: number | null) => (ms === null ? null : isoTime(ms))

/** Stands for the secret, which is not shown again. */
export const SECRET_PLACE = '<SECRET>'

/** Without its address, for lists. */
export function hookView(record: TokenRecord, now: number) {
  return {
    key_id: record.keyId,
    name: record.label,
    recipe: record.recipe,
    scope: record.scope,
    state: tokenState(record, now),
    created_at: isoTime(record.createdAt),
    expires_at: time(record.expiresAt),
    disabled_at: time(record.disabledAt),
    last_used_at: time(record.lastUsedAt),
    rotated_from: record.rotatedFrom,
    rate_limit: record.rateLimit === null ? null : formatRate(record.rateLimit),
  }
}

export interface HookDetailSource {
  readonly record: TokenRecord
  readonly hook: HookRecord
  /** Null for one of a newer Intray. */
  readonly recipe: Recipe | null
  /** Null if the caller may not see the address, or if it does not open. */
  readonly opened: HookSecrets | null
  /** Without the path. */
  readonly publicUrl: string
  readonly now: number
}

export function hookDetail({ record, hook, recipe, opened, publicUrl, now }: HookDetailSource) {
  const url = opened && `${publicUrl}${HOOK_PATH}${opened.hookId}`
  const verifyToken = opened && recipe?.challenge?.kind === 'hub' ? verifyTokenOf(opened.hookId) : null
  const guide = record.recipe === null ? null : (builtInRecipe(record.recipe)?.guide ?? null)
  const filled = (step: string) =>
    step.replaceAll('{url}', url ?? '<URL>').replaceAll('{verify_token}', verifyToken ?? '<VERIFY TOKEN>')
  const valid = opened?.secrets.filter(({ until }) => until === null || until > now) ?? null
  return {
    ...hookView(record, now),
    title: recipe?.title ?? null,
    max_body_bytes: hook.maxBody,
    url,
    verify_token: verifyToken,
    signature: recipe === null ? null : { kind: recipe.signature.kind, needs_secret: needsSecret(recipe) },
    secrets: valid?.map(({ until }) => ({ until: time(until) })) ?? null,
    setup: guide && {
      secret: guide.secret,
      steps: guide.steps.map((step) => filled(step).replaceAll('{secret}', SECRET_PLACE)),
    },
  }
}

/** The built-in recipes, for a choice. */
export function recipeViews() {
  return BUILT_IN_RECIPES.map((recipe) => ({
    recipe: recipeRef(recipe),
    name: recipe.name,
    version: recipe.version,
    title: recipe.title,
    bodies: recipe.bodies,
    signature: { kind: recipe.signature.kind, needs_secret: needsSecret(recipe) },
    has_challenge: recipe.challenge !== undefined,
    source_ref: recipe.sourceRef,
    channel_ref: recipe.channelRef,
    setup: recipe.guide,
    has_sample: sampleOf(recipeRef(recipe)) !== null,
  }))
}

// "Send a sample": what a recipe reads of a sample request, and the message that is stored as a test event. Its signature is not
// checked, and it has no references, so that it is never taken for a message of the vendor.

import { HOOK_PATH } from '../model/hook.ts'
import { type Recipe, recipeRef } from '../model/recipes/recipe.ts'
import { explain } from './explanation.ts'
import { type HookSample, sampleOf, sampleRequest } from './samples.ts'

/** `body`: one's own in place of the recipe's. The problem: `no_sample` of this recipe, or the body is `no_message`. */
export function sampleMessage(
  recipe: Recipe,
  {
    body,
    contentType = 'application/json',
  }: { readonly body?: string | undefined; readonly contentType?: string | undefined },
  now: number,
) {
  const ref = recipeRef(recipe)
  const sample: HookSample | null = body === undefined ? sampleOf(ref) : { body, contentType, headers: {} }
  if (sample === null) return 'no_sample' as const
  const request = sampleRequest(sample, `${HOOK_PATH}sample`)
  const { outcome, extract } = explain(recipe, request, { secrets: [], publicUrl: null, now })
  if (outcome.kind !== 'message') return 'no_message' as const
  return {
    payload: request.payload,
    contentType: sample.contentType,
    hook: { recipe: ref, sourceRef: null, channelRef: null, warnings: [] },
    read: {
      source_ref: outcome.sourceRef,
      channel_ref: outcome.channelRef,
      is_batch: outcome.isBatch,
      contact: { name: extract?.contactName ?? null, email: extract?.contactEmail ?? null },
      message_type: extract?.messageType ?? null,
      snippet: extract?.snippet ?? null,
      warnings: [...outcome.warnings, ...(extract?.warnings ?? [])],
    },
  }
}

/** As JSON: what the message would be stored and shown with. */
export type SampleRead = Exclude<ReturnType<typeof sampleMessage>, string>['read']

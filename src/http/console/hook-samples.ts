// "Send a sample": stores a sample request of a hook's recipe as a test event, and says what the recipe read. Its signature is not
// checked, and it has no references, so that it can never be taken for a message of the vendor.

import type { FoundTenantHook } from '../../auth/tenant-hooks.ts'
import { explain } from '../../hooks/explanation.ts'
import { type HookSample, sampleOf, sampleRequest } from '../../hooks/samples.ts'
import { HOOK_PATH } from '../../model/hook.ts'
import type { Problem } from '../../model/errors.ts'
import { type Call, callerOf, jsonAnswer, type Operation } from '../call.ts'
import { invalidRequest } from '../problem.ts'
import { remoteAddress } from '../remote-address.ts'
import type { ConsoleOptions } from './options.ts'
import { withTextFields } from './text-fields.ts'

const MAX_SAMPLE_BYTES = 64 * 1024
const NOT_FOUND: Problem = { code: 'not_found' }

export function sampleOperation(
  { accept, clock, remoteAddr }: ConsoleOptions,
  find: (call: Call) => Promise<FoundTenantHook | null>,
): Operation {
  return withTextFields(['body', 'content_type'], MAX_SAMPLE_BYTES, async (call, given) => {
    const found = await find(call)
    if (!found?.recipe) return NOT_FOUND
    const { record, recipe } = found
    const sample = sampleFrom(record.recipe!, given)
    if (sample === null) return invalidRequest('This recipe brings no sample. Send one as body, with its content_type.')
    const request = sampleRequest(sample, `${HOOK_PATH}sample`)
    const { outcome, extract } = explain(recipe, request, { secrets: [], publicUrl: null, now: clock.now() })
    if (outcome.kind !== 'message') return invalidRequest('The recipe does not read this body as a message.')
    const { keyId, scope } = record
    const { exchange } = call
    const result = await accept({
      principal: { ...callerOf(call), keyId, scope },
      route: call.route.path,
      requestId: exchange.requestId,
      payload: request.payload,
      contentType: sample.contentType,
      idempotencyKeys: [],
      traceparent: null,
      userAgent: null,
      remoteAddr: remoteAddress(exchange.address, remoteAddr),
      hook: { recipe: record.recipe!, sourceRef: null, channelRef: null, warnings: [] },
      origin: 'test',
    })
    if ('problem' in result) return result.problem
    exchange.eventId = result.id
    exchange.outcome = result.outcome
    return jsonAnswer({
      id: result.id,
      key_id: keyId,
      read: {
        source_ref: outcome.sourceRef,
        channel_ref: outcome.channelRef,
        is_batch: outcome.isBatch,
        contact: { name: extract?.contactName ?? null, email: extract?.contactEmail ?? null },
        message_type: extract?.messageType ?? null,
        snippet: extract?.snippet ?? null,
        warnings: [...outcome.warnings, ...(extract?.warnings ?? [])],
      },
    })
  })
}

function sampleFrom(
  ref: string,
  { body, content_type: contentType = 'application/json' }: Partial<Record<'body' | 'content_type', string>>,
): HookSample | null {
  return body === undefined ? sampleOf(ref) : { body, contentType, headers: {} }
}

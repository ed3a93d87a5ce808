// "Send a sample": stores a sample request of a hook's recipe as a test event, and says what the recipe reads (hooks/sample-message.ts).

import type { FoundTenantHook } from '../../auth/tenant-hooks.ts'
import { sampleMessage } from '../../hooks/sample-message.ts'
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
    const sample = sampleMessage(recipe, { body: given.body, contentType: given.content_type }, clock.now())
    if (sample === 'no_sample')
      return invalidRequest('This recipe brings no sample. Send one as body, with its content_type.')
    if (sample === 'no_message') return invalidRequest('The recipe does not read this body as a message.')
    const { read, ...message } = sample
    const { keyId, scope } = record
    const { exchange } = call
    const result = await accept({
      ...message,
      principal: { ...callerOf(call), keyId, scope },
      route: call.route.path,
      requestId: exchange.requestId,
      idempotencyKeys: [],
      traceparent: null,
      userAgent: null,
      remoteAddr: remoteAddress(exchange.address, remoteAddr),
      origin: 'test',
    })
    if ('problem' in result) return result.problem
    exchange.eventId = result.id
    exchange.outcome = result.outcome
    return jsonAnswer({ id: result.id, key_id: keyId, read })
  })
}

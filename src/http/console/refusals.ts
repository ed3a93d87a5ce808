// One refusal in full, its acceptance by an operator, and test events.

import type { Arrival } from '../../intake/accept.ts'
import { refusalView } from '../../model/refusal-view.ts'
import { type Call, callerOf, idIn, jsonAnswer, readPayload } from '../call.ts'
import { withQuery } from '../query.ts'
import { remoteAddress } from '../remote-address.ts'
import type { ConsoleOptions } from './options.ts'

export function refusalOperations(options: ConsoleOptions) {
  const { findRefusal, acceptRefusal, accept, maxBodyBytes } = options

  const arrivalOf = (call: Call, payload: Buffer): Omit<Arrival, 'route' | 'idempotencyKeys'> => ({
    principal: callerOf(call),
    requestId: call.exchange.requestId,
    payload,
    contentType: 'application/json',
    traceparent: null,
    userAgent: null,
    remoteAddr: remoteAddress(call.exchange.address, options.remoteAddr),
  })

  const showRefusal = withQuery({}, async (call) => {
    const id = idIn(call)
    const refusal = id === null ? null : await findRefusal(callerOf(call), id)
    if (!refusal) return { code: 'not_found' }
    const body_base64 = Buffer.from(refusal.body).toString('base64')
    return jsonAnswer({ refusal: { ...refusalView(refusal), body_base64 } })
  })

  /** Looks the refusal up before it reads the body: an unknown id gets the same answer for every body. */
  const acceptOperation = withQuery({}, async (call) => {
    const id = idIn(call)
    if (id === null || !(await findRefusal(callerOf(call), id))) return { code: 'not_found' }
    const read = await readPayload(call, maxBodyBytes)
    if ('problem' in read) return read.problem
    const result = await acceptRefusal(id, arrivalOf(call, read.payload))
    if ('problem' in result) return result.problem
    call.exchange.eventId = result.id
    return jsonAnswer({ id: result.id, refusal_id: id })
  })

  const sendTestEvent = withQuery({}, async (call) => {
    const read = await readPayload(call, maxBodyBytes)
    if ('problem' in read) return read.problem
    const arrival = arrivalOf(call, read.payload)
    const result = await accept({ ...arrival, route: call.route.path, idempotencyKeys: [], origin: 'test' })
    if ('problem' in result) return result.problem
    call.exchange.eventId = result.id
    call.exchange.outcome = result.outcome
    call.exchange.auditTarget = String(result.id)
    return jsonAnswer({ id: result.id, outcome: result.outcome })
  })

  return { showRefusal, acceptRefusal: acceptOperation, sendTestEvent }
}

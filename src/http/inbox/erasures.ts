// Erasing messages over HTTP, for operators who are admins and tokens of the scope `admin`. A call takes one page of what it
// names; the answer says where to go on.

import { readErasure } from '../../processing/commands.ts'
import type { ErasePage } from '../../erasure/erasures.ts'
import { type Call, callerOf, idIn, jsonAnswer, type Outcome } from '../call.ts'
import { lagField } from '../paging.ts'
import { withQuery } from '../query.ts'
import { orUnavailable } from '../unavailable.ts'
import { OUTCOME_UNKNOWN, withCommand } from './command.ts'
import type { InboxOptions } from './options.ts'

export function erasureOperations({ erasures, events, awaitIndex, refusalsSettled, onErased }: InboxOptions) {
  const run = async (call: Call, page: ErasePage): Promise<Record<string, unknown>> => {
    const caller = callerOf(call)
    await refusalsSettled()
    const { messages, events: rows, refusals, next } = await erasures.page(caller, page)
    if (!page.dryRun) onErased()
    const pending = await erasures.isPending(caller)
    return { dry_run: page.dryRun, messages, events: rows, refusals, next, pending }
  }

  const eraseEvent = withQuery({}, (call) =>
    orUnavailable<Outcome>(async () => {
      const id = idIn(call)
      if (id === null || !(await events.find(id, callerOf(call)))) return { code: 'not_found' }
      return jsonAnswer({ id, ...(await run(call, { selector: { event: id }, dryRun: false, after: null })) })
    }, OUTCOME_UNKNOWN),
  )

  const erase = withCommand(readErasure, async (call, { selector, dryRun, cursor }) => {
    const [kind, value] = Object.entries(selector)[0]!
    // An address or a reference is what the erasure removes: the audit log keeps neither.
    call.exchange.auditTarget = typeof value === 'number' ? `${kind} ${value}` : kind
    call.exchange.isNoOp = dryRun
    const lag = await awaitIndex()
    return jsonAnswer({ ...(await run(call, { selector, dryRun, after: cursor })), ...lagField(lag) })
  })

  return { eraseEvent, erase }
}

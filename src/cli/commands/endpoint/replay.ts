// `./intray endpoint replay`: delivers a range of events again. Counts first, and asks for --yes before it changes anything.

import { wholeNumber } from '../../../runtime/parameter.ts'
import { recordCommand } from '../../audit.ts'
import { command, UsageError } from '../../command.ts'
import { type EndpointContext, withEndpoints } from '../../endpoint-context.ts'
import { flag, JSON_FLAG, MAX_ID, SUBSCRIPTION_FLAG, TENANT_FLAGS, tenantOf } from '../../flags.ts'
import { print, printJson } from '../../output.ts'
import { requireSubscription, subscriptionOf } from '../../processing-context.ts'

/** Replayed in one call. */
const STEP = 1000

export const endpointReplay = command({
  about: `Delivers a range of events again: those that are done or dead, the oldest first, under the same webhook-id. Without --yes it
only counts them.`,
  flags: {
    ...TENANT_FLAGS,
    ...SUBSCRIPTION_FLAG,
    from: { value: 'ID', about: 'The first event of the range.', isRequired: true },
    to: { value: 'ID', about: 'The last event of the range.', isRequired: true },
    yes: { about: 'Do it.' },
    ...JSON_FLAG,
  },
  async run(values) {
    const fromId = flag('from', values.from, wholeNumber(1, MAX_ID))
    const toId = flag('to', values.to, wholeNumber(1, MAX_ID))
    if (fromId === undefined || toId === undefined) throw new UsageError('endpoint replay needs --from ID and --to ID.')
    if (fromId > toId) throw new UsageError('--to must not be below --from.')
    const range = { fromId, toId }
    await withEndpoints(tenantOf(values), subscriptionOf(values), async (context) => {
      const { endpoints, processor, subscription } = context
      const matched = await requireSubscription(await endpoints.countReplay(processor, subscription, range), context)
      const replayed = values.yes ? await replayAll(context, range) : 0
      if (values.json) printJson({ matched, replayed })
      else if (values.yes) print(`${replayed} of ${matched} events are delivered again.\n`)
      else print(`${matched} events of this range are done or dead. To deliver them again, add --yes.\n`)
    })
  },
})

async function replayAll(context: EndpointContext, range: { fromId: number; toId: number }): Promise<number> {
  const { endpoints, processor, subscription, store } = context
  let [replayed, next]: [number, number | null] = [0, range.fromId]
  while (next !== null) {
    const done = await endpoints.replay(processor, subscription, { ...range, fromId: next }, STEP)
    if (done === null) break
    replayed += done.count
    next = done.nextId
  }
  await recordCommand(store, 'endpoint_replay', `${subscription} ${range.fromId}-${range.toId}`, processor)
  return replayed
}

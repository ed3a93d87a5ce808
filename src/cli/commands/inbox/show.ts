// `./intray inbox show`: one event of a tenant with its processing history, or its payload's bytes.

import type { Tenant } from '../../../model/principal.ts'
import { deliveryView } from '../../../processing/views.ts'
import { isoTime } from '../../../runtime/clock.ts'
import type { DeliveryRecord } from '../../../store/contract/processing.ts'
import type { Store } from '../../../store/contract/store.ts'
import { command, CommandError } from '../../command.ts'
import { eventDetail, printEventDetail, writePayload } from '../../inbox/event-detail.ts'
import { eventId, JSON_FLAG, RAW_FLAG, TENANT_FLAGS, tenantOf } from '../../flags.ts'
import { withStore } from '../../open.ts'
import { outputWidth, print, printJson, record, table } from '../../output.ts'

export const inboxShow = command({
  args: 'ID',
  about: `Shows an event or a revision of a tenant with its processing history, or its payload. Prints its fields, warnings,
conversation, re-sends and revisions, and its state and history in each subscription.`,
  flags: { ...TENANT_FLAGS, ...RAW_FLAG, ...JSON_FLAG },
  async run(values, [idText]) {
    const id = eventId(idText)
    const tenant = tenantOf(values)
    await withStore(async (store) => {
      const found = await store.events.find(id, tenant)
      if (!found) throw new CommandError(`This tenant has no event ${id}.`)
      if (values.raw) {
        await writePayload(store, found)
        return
      }
      const detail = await eventDetail(store, found)
      const conversation = await conversationOf(store, tenant, detail.conversation_id)
      // Revisions are not processed.
      const deliveries = found.kind === 'event' ? await store.processing.history(tenant, id) : []
      if (values.json) {
        printJson({ ...detail, conversation, deliveries: deliveries.map(deliveryView) })
        return
      }
      printEventDetail(detail)
      if (conversation) print(`\nConversation\n${record(conversation)}`)
      printDeliveries(deliveries)
      const flags = `--account ${tenant.accountId} --company ${tenant.companyId}`
      print(`\nThe payload as sent: ./intray inbox show ${id} ${flags} --raw\n`)
    })
  },
})

async function conversationOf(store: Store, tenant: Tenant, id: number | null) {
  const found = id === null ? null : await store.inbox.conversation(tenant, id)
  return (
    found && {
      id: found.id,
      channel_ref: found.channelRef,
      event_count: found.eventCount,
      last_event_id: found.lastEventId,
      last_received_at: isoTime(found.lastReceivedAt),
    }
  )
}

function printDeliveries(deliveries: readonly DeliveryRecord[]): void {
  if (deliveries.length === 0) return
  const time = (ms: number | null) => (ms === null ? '-' : isoTime(ms))
  const states = deliveries.map((one) => [
    one.subscription,
    one.state,
    String(one.attempts),
    one.keyId ?? '-',
    time(one.state === 'pending' ? one.availableAt : (one.leaseExpiresAt ?? one.settledAt)),
  ])
  print(`\nProcessing\n${table(['SUBSCRIPTION', 'STATE', 'ATTEMPTS', 'CLAIMED BY', 'SINCE OR UNTIL'], states)}`)
  const history = deliveries.flatMap(({ subscription, history: entries }) =>
    entries.map(({ at, what, state, attempts, keyId, error }) => [
      subscription,
      isoTime(at),
      what,
      state,
      String(attempts),
      keyId ?? '-',
      error ?? '-',
    ]),
  )
  if (history.length === 0) return
  const header = ['SUBSCRIPTION', 'AT', 'WHAT', 'THEN', 'ATTEMPTS', 'BY', 'ERROR']
  print(`\nHistory\n${table(header, history, outputWidth())}`)
}

// `./intray inbox ack`: acknowledges claimed events.

import { settleCommand } from '../../inbox/settle.ts'

export const inboxAck = settleCommand(
  'Acknowledges claimed events: they are done and are not handed out again.',
  {},
  ({ claims, processor, subscription }, items) => claims.ack(processor, subscription, items),
)

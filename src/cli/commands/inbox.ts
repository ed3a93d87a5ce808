// `./intray inbox …`: reads and processes the inbox of a tenant by hand. One file for each sub-command.

import { commandGroup } from '../command.ts'
import { inboxAck } from './inbox/ack.ts'
import { inboxClaim } from './inbox/claim.ts'
import { inboxList } from './inbox/list.ts'
import { inboxRelease } from './inbox/release.ts'
import { inboxRequeue } from './inbox/requeue.ts'
import { inboxShow } from './inbox/show.ts'
import { inboxSubscription } from './inbox/subscription.ts'
import { inboxTail } from './inbox/tail.ts'

export const inbox = commandGroup(
  'Reads and processes the inbox of a tenant',
  `Reads the inbox of one tenant (--account N --company N) and processes it by hand. Works with a running server and without.`,
  {
    list: inboxList,
    show: inboxShow,
    tail: inboxTail,
    claim: inboxClaim,
    ack: inboxAck,
    release: inboxRelease,
    requeue: inboxRequeue,
    subscription: inboxSubscription,
  },
)

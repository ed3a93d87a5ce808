// `./intray inbox ack`: says that claimed events are done.

import type { Subcommand } from '../command.ts'
import { SETTLE_HELP, settle } from '../inbox-settle.ts'

const HELP = `
Usage: ./intray inbox ack ID LEASE_ID [ID LEASE_ID …] --account N --company M [--subscription default] [--json]
       ./intray inbox ack --stdin --account N --company M [--subscription default] [--json]

Says that claimed events are done. They are never handed out again.

${SETTLE_HELP}`

export const inboxAck: Subcommand = {
  summary: 'Says that claimed events are done.',
  help: HELP,
  run: (args) =>
    settle(args, [], ({ claims, operator, subscription }, items) => claims.ack(operator, subscription, items)),
}

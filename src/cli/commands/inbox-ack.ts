// `./intray inbox ack`: acknowledges claimed events.

import type { Subcommand } from '../command.ts'
import { SETTLE_HELP, settle } from '../inbox-settle.ts'

const HELP = `
Usage: ./intray inbox ack ID LEASE_ID [ID LEASE_ID …] --account N --company N [--subscription default] [--json]
       ./intray inbox ack --stdin --account N --company N [--subscription default] [--json]

Acknowledges claimed events: they are done and are not handed out again.

${SETTLE_HELP}`

export const inboxAck: Subcommand = {
  summary: 'Acknowledges claimed events.',
  help: HELP,
  run: (args) =>
    settle(args, [], ({ claims, processor, subscription }, items) => claims.ack(processor, subscription, items)),
}

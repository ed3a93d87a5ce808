// `./intray inbox release`: gives claimed events back, to be handed out again.

import type { Subcommand } from '../command.ts'
import { SETTLE_HELP, settle } from '../inbox-settle.ts'

const HELP = `
Usage: ./intray inbox release ID LEASE_ID [ID LEASE_ID …] --account N --company N [--delay 10s] [--error TEXT]
                              [--subscription default] [--json]
       ./intray inbox release --stdin …

Gives claimed events back, to be handed out again. Later events that were claimed with one in its channel are given back
too.

  --delay TIME      Hand them out again after this: 0s to 12h. Without it after 1, 2, 4, … s, by the number of attempts.
  --error TEXT      The reason, kept in the history of the event.
${SETTLE_HELP}`

export const inboxRelease: Subcommand = {
  summary: 'Gives claimed events back.',
  help: HELP,
  run: (args) =>
    settle(args, ['delay', 'error'], ({ claims, processor, subscription }, items) =>
      claims.release(processor, subscription, items),
    ),
}

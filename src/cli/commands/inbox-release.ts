// `./intray inbox release`: gives claimed events back, to be handed out again.

import type { Subcommand } from '../command.ts'
import { SETTLE_HELP, settle } from '../inbox-settle.ts'

const HELP = `
Usage: ./intray inbox release ID LEASE_ID [ID LEASE_ID …] --account N --company M [--delay 10s] [--error TEXT]
                              [--subscription default] [--json]
       ./intray inbox release --stdin …

Gives claimed events back, to be handed out again. What was claimed behind one in its channel is given back with it.

  --delay TIME      Not before this: 0s to 12h. Without it 1, 2, 4, … s, by the number of attempts.
  --error TEXT      Why; kept in the history of the event.
${SETTLE_HELP}`

export const inboxRelease: Subcommand = {
  summary: 'Gives claimed events back.',
  help: HELP,
  run: (args) =>
    settle(args, ['delay', 'error'], ({ claims, operator, subscription }, items) =>
      claims.release(operator, subscription, items),
    ),
}

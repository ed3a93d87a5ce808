// `./intray inbox release`: gives claimed events back, to be handed out again.

import { settleCommand } from '../inbox-settle.ts'

export const inboxRelease = settleCommand(
  `Gives claimed events back, to be handed out again. Later events that were claimed with one in its channel are given back
too.`,
  {
    delay: {
      value: 'TIME',
      about: 'Hand them out after 0s to 12h. Without it after 1, 2, 4, … s, by the number of attempts.',
    },
    error: { value: 'TEXT', about: 'The reason, kept in the history of the event.' },
  },
  ({ claims, processor, subscription }, items) => claims.release(processor, subscription, items),
)

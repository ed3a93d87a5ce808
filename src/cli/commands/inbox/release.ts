// `./intray inbox release`: gives claimed events back, to be handed out again, or parks them as dead.

import { settleCommand } from '../../inbox/settle.ts'

export const inboxRelease = settleCommand(
  `Gives claimed events back, to be handed out again. With --error an attempt failed; without it no attempt is counted. Later
events that were claimed with one in its channel are given back too.`,
  {
    delay: {
      value: 'TIME',
      about:
        'Hand them out after 0s to 12h. Without it after 1, 2, 4, … s by the number of failed attempts, or as the subscription says.',
    },
    error: { value: 'TEXT', about: 'Why the attempt failed: kept in the history of the event.' },
    dead: { about: 'With --error: no attempt will succeed. The events are dead at once.' },
  },
  ({ claims, processor, subscription }, items) => claims.release(processor, subscription, items),
)

// `./intray inbox …`: what processors do, for people. One file for each subcommand.

import { type Command, type Subcommand, UsageError } from '../command.ts'
import { inboxAck } from './inbox-ack.ts'
import { inboxClaim } from './inbox-claim.ts'
import { inboxList } from './inbox-list.ts'
import { inboxRelease } from './inbox-release.ts'
import { inboxRequeue } from './inbox-requeue.ts'
import { inboxShow } from './inbox-show.ts'
import { inboxTail } from './inbox-tail.ts'

const ACTIONS: Readonly<Record<string, Subcommand>> = {
  list: inboxList,
  show: inboxShow,
  tail: inboxTail,
  claim: inboxClaim,
  ack: inboxAck,
  release: inboxRelease,
  requeue: inboxRequeue,
}

const HELP = `
Usage: ./intray inbox ACTION --account N --company M …

Looks at what a tenant received, and processes it by hand. Works beside a running server and without one.

${Object.entries(ACTIONS)
  .map(([name, { summary }]) => `  ${name.padEnd(8)} ${summary}`)
  .join('\n')}

  --account N, --company M  The tenant; always needed.
  --json                    One JSON object a line, for scripts.

'./intray inbox ACTION --help' tells more about one.`

export const inbox: Command = {
  name: 'inbox',
  summary: `Look at what came in, and process it: inbox ${Object.keys(ACTIONS).join(' | ')}.`,
  help: HELP,
  helpOf: ([name = '']) => actionOf(name)?.help,
  async run(args) {
    const [name = '', ...rest] = args
    const action = actionOf(name)
    if (!action) throw new UsageError(`inbox takes one of: ${Object.keys(ACTIONS).join(', ')}.`)
    return action.run(rest)
  },
}

function actionOf(name: string): Subcommand | undefined {
  return Object.hasOwn(ACTIONS, name) ? ACTIONS[name] : undefined
}

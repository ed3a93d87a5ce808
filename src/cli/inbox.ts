// `./intray inbox …`: what processors do, for people. One file for each action.

import type { Command } from './command.ts'
import { UsageError } from './command.ts'
import { inboxTail } from './inbox-tail.ts'

/** One action of the command. */
export interface InboxAction {
  readonly help: string
  run(args: readonly string[]): Promise<number>
}

const ACTIONS: Readonly<Record<string, InboxAction>> = { tail: inboxTail }

export const inbox: Command = {
  name: 'inbox',
  summary: `Look at what came in: inbox ${Object.keys(ACTIONS).join(' | ')}.`,
  help: Object.values(ACTIONS)
    .map(({ help }) => help.trim())
    .join('\n\n'),
  async run(args) {
    const [name = '', ...rest] = args
    const action = Object.hasOwn(ACTIONS, name) ? ACTIONS[name] : undefined
    if (!action) throw new UsageError(`inbox takes one of: ${Object.keys(ACTIONS).join(', ')}.`)
    return action.run(rest)
  },
}

// `./intray event show`: one stored event with all its fields, or its payload's bytes.

import { CommandError, commandGroup, type Subcommand } from '../command.ts'
import { eventDetail, printEventDetail, writePayload } from '../event-detail.ts'
import { eventId, JSON_FLAG, parseFlags } from '../flags.ts'
import { withStore } from '../open.ts'
import { print, printJson } from '../output.ts'

const show: Subcommand = {
  summary: 'Shows one event or revision, or its payload.',
  help: `
Usage: ./intray event show ID [--raw | --json]

Shows what is stored of an event or a revision of any tenant: when and how it arrived, what the index says of it, how often
it was sent again.

  --raw   Write the payload's bytes to stdout, exactly as sent, and nothing else.
  --json  Print one JSON object.`,
  async run(args) {
    const { values, positionals } = parseFlags(args, { raw: { type: 'boolean' }, ...JSON_FLAG }, 'ID')
    const id = eventId(positionals[0])
    await withStore(async (store) => {
      const found = await store.events.find(id)
      if (!found) throw new CommandError(`There is no event ${id}. './intray inbox list' lists the events of a tenant.`)
      if (values.raw) {
        await writePayload(store, found)
        return
      }
      const detail = await eventDetail(store, found)
      if (values.json) printJson(detail)
      else {
        printEventDetail(detail)
        print(`\nThe payload as sent: ./intray event show ${id} --raw\n`)
      }
    })
    return 0
  },
}

export const event = commandGroup('event', 'Look at a stored event', 'Shows stored events of any tenant.', { show })

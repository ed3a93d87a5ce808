// `./intray event show`: what was stored, as it was stored.

import { parseArgs } from 'node:util'
import { type Command, CommandError, UsageError } from '../command.ts'
import { eventDetail, printEventDetail, writePayload } from '../event-detail.ts'
import { withStore } from '../open.ts'
import { print, printJson } from '../output.ts'

const HELP = `
Usage: ./intray event show ID [--raw | --json]

Shows what is stored of an event or a revision: when and how it came in, what the index made of it, how often it was
sent again.

  --raw   Write the payload's bytes to stdout, exactly as sent, and nothing else.
  --json  Print one JSON object.`

export const event: Command = {
  name: 'event',
  summary: 'Look at what was stored: event show ID [--raw].',
  help: HELP,
  async run(args) {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { raw: { type: 'boolean' }, json: { type: 'boolean' } },
    })
    const [action, idText = '', ...rest] = positionals
    const id = /^\d{1,15}$/.test(idText) ? Number(idText) : 0
    if (action !== 'show' || id === 0 || rest.length > 0) throw new UsageError('event takes: show ID.')
    await withStore(async (store) => {
      const found = await store.events.find(id)
      if (!found) throw new CommandError(`There is no event ${id}.`)
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

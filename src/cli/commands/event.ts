// `./intray event show`: one stored event with all its fields, or its payload's bytes.

import { command, CommandError, commandGroup } from '../command.ts'
import { eventDetail, printEventDetail, writePayload } from '../inbox/event-detail.ts'
import { eventId, JSON_FLAG, RAW_FLAG } from '../flags.ts'
import { withStore } from '../open.ts'
import { print, printJson } from '../output.ts'

const show = command({
  args: 'ID',
  about: `Shows an event or a revision of any tenant, or its payload. Prints when and how it arrived, its index entry, and how often
it was sent again.`,
  flags: { ...RAW_FLAG, ...JSON_FLAG },
  async run(values, [idText]) {
    const id = eventId(idText)
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
  },
})

export const event = commandGroup('Shows a stored event', 'Shows stored events of any tenant.', { show })

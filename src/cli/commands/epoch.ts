// `./intray epoch`: for a database that was restored by other means than `./intray restore`.

import { command, CommandError } from '../command.ts'
import { JSON_FLAG } from '../flags.ts'
import { withStore } from '../open.ts'
import { print, printJson } from '../output.ts'

export const epoch = command({
  about: `Makes ids jump, after a database was restored without ./intray restore.

Run it once after a point-in-time recovery, or after putting an older copy of the database in place, before servers start. The
restored database lacks the newest messages of the old one, and followers have seen their ids: new ids begin
1,000,000,000 higher, and a stream or a list that goes on after a lost id is answered 409 cursor_ahead.`,
  flags: JSON_FLAG,
  async run(values) {
    const gap = await withStore(async (store) => {
      if ((await store.nodes.live()).length > 0) {
        throw new CommandError('Servers are running on the database. Stop all of them, then run this again.')
      }
      return store.recovery.beginEpoch(Date.now())
    })
    if (values.json) printJson({ ok: true, gap })
    else print(`Ids up to ${gap.after} are kept. New ids begin above ${gap.before}.\n`)
  },
})

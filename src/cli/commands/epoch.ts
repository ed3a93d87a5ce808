// `./intray epoch`: for a database that was restored by other means than `./intray restore`.

import { command, CommandError } from '../command.ts'
import { ERASURE_FLAGS, eraseAgain, erasureSourceOf } from '../copying/erasure-source.ts'
import { JSON_FLAG } from '../flags.ts'
import { withStore } from '../open.ts'
import { print, printJson } from '../output.ts'

export const epoch = command({
  about: `Makes ids jump, after a database was restored without ./intray restore.

Run it once after a point-in-time recovery, or after putting an older copy of the database in place, before servers start. The
restored database lacks the newest messages of the old one, and followers have seen their ids: new ids begin
at least 1,000,000,000 higher, and a stream or a list that goes on after a lost id is answered 409 cursor_ahead.

  ./intray epoch --erasures /backup

It also holds again what was erased since: --erasures erases that, with the folder of the erasure log or the URL of the old database.`,
  flags: { ...ERASURE_FLAGS, ...JSON_FLAG },
  async run(values) {
    const source = erasureSourceOf(values)
    const { gap, erased } = await withStore(async (store) => {
      if ((await store.nodes.live()).length > 0) {
        throw new CommandError('Servers are running on the database. Stop all of them, then run this again.')
      }
      const erased = source === null ? null : await eraseAgain(source, store)
      return { erased, gap: await store.recovery.beginEpoch(Date.now()) }
    })
    if (values.json) printJson({ ok: true, ...(erased === null ? {} : { erased }), gap })
    else {
      if (erased !== null) print(`Erased ${erased} of its events and revisions again.\n`)
      print(`Ids up to ${gap.after} are kept. New ids begin above ${gap.before}.\n`)
    }
  },
})

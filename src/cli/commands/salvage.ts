// `./intray salvage`: makes a new database of everything that can be read of a damaged one, and says what is missing.

import { loadConfig } from '../../config.ts'
import { DatabaseDamaged, StoreFailure } from '../../store/contract/failure.ts'
import type { CopySide } from '../../store/contract/copy.ts'
import { openSalvageTarget, urlOfFile } from '../../store/open.ts'
import { buildIndex } from '../copying/build-index.ts'
import { command, CommandError, UsageError } from '../command.ts'
import { JSON_FLAG } from '../flags.ts'
import { withSide, withStore } from '../open.ts'
import { inSteps, print, printable, printJson, table as textTable } from '../output.ts'
import { type Salvaged, salvageTables } from '../doctor/salvage-tables.ts'
import { tableDigest } from '../copying/table-digest.ts'

/** The exit code if the new database has less than the damaged one had: a script must not take it for a whole one. */
const ROWS_MISSING = 3

const ABOUT = `Copies everything that can be read of a damaged database into a new one.

  ./intray salvage --to ./data/intray.salvaged.db

Reads each table row by row around what damaged pages hide, and names what is missing: tables, ids and counts. The damaged
database stays as it is; stop its servers first. The new one is a file of its own, whatever the kind of the damaged one (./intray
copy brings it to another kind). FILE must not exist. Lost messages can be sent again: their dedupe keys are left out. Lost dedupe keys are made again from
their messages. Its index is built. If nothing is missing, both sides are compared by the count and SHA-256 of every table.

Then check it with ./intray doctor and start servers with INTRAY_DATABASE_URL set to it.`

export const salvage = command({
  about: ABOUT,
  flags: {
    to: { value: 'FILE', about: 'The file of the new database.' },
    ...JSON_FLAG,
  },
  notes: `The exit code is 0 if nothing is missing, ${ROWS_MISSING} if rows are missing, and 1 if there is no new database.`,
  async run(values) {
    if (values.to === undefined) throw new UsageError('The target is missing. Give --to FILE.')
    const to = urlOfFile(values.to)
    const { databaseUrl } = loadConfig(process.env)
    const found = await salvageInto(databaseUrl, to)
    await buildIndex(to)
    if (values.json) printJson(jsonOf(found))
    else report(found, to)
    return isWhole(found) ? 0 : ROWS_MISSING
  },
})

async function salvageInto(from: string, to: string): Promise<Salvaged> {
  return withSide(from, true, async (source) => {
    await requireStopped(from)
    const target = await openSalvageTarget(to)
    try {
      const found = await inSteps('salvage', (say) => salvageTables(source, target.side, say))
      if (isWhole(found)) await requireEqual(source, target.side)
      await target.publish()
      return found
    } catch (error) {
      if (!(error instanceof StoreFailure) || error.kind !== 'damaged') throw error
      throw new CommandError(
        `Pages without which nothing can be copied are damaged (${error.message}). Restore a backup: ./intray restore FILE --to URL`,
      )
    } finally {
      await target.discard()
    }
  })
}

/** What comes in meanwhile would be missing. */
async function requireStopped(databaseUrl: string): Promise<void> {
  const running = await withStore(({ nodes }) => nodes.live(), { databaseUrl }).catch((error: unknown) => {
    const isDamaged = error instanceof DatabaseDamaged || (error instanceof StoreFailure && error.kind === 'damaged')
    if (!isDamaged) throw error
    return []
  })
  if (running.length > 0) throw new CommandError('Servers are running on the database. Stop them first.')
}

const isWhole = ({ tables, keysMade }: Salvaged): boolean =>
  keysMade === 0 && tables.every(({ missing }) => missing.length === 0)

async function requireEqual(source: CopySide, target: CopySide): Promise<void> {
  for (const table of source.tables) {
    const [there, here] = await inSteps('verify', (say) =>
      Promise.all([source, target].map((side) => tableDigest(side, table, say))),
    )
    if (there!.rows === here!.rows && there!.sha256 === here!.sha256) continue
    throw new CommandError(
      `The copy differs from its source in ${table.name}, so it was not kept. Run the command again.`,
    )
  }
}

function jsonOf(found: Salvaged) {
  return {
    ok: true,
    complete: isWhole(found),
    lost_messages: found.lostMessages,
    keys_made: found.keysMade,
    tables: found.tables,
  }
}

const SHOWN = 20

function report(found: Salvaged, to: string): void {
  const rows = found.tables.map(({ table, rows: count, missing }) => {
    const more = missing.length > SHOWN ? `; and ${missing.length - SHOWN} more` : ''
    return [table, String(count), missing.length === 0 ? '-' : printable(missing.slice(0, SHOWN).join('; ') + more)]
  })
  print(textTable(['TABLE', 'ROWS', 'MISSING'], rows))
  if (isWhole(found)) print('\nNothing is missing: every table is equal to its source.\n')
  else {
    const ids = found.lostMessages.slice(0, SHOWN).join(', ')
    const more = found.lostMessages.length > SHOWN ? ', …' : ''
    print(
      `\n${found.lostMessages.length} messages are lost${ids && ` (${ids}${more})`}: their senders can send them again.\n`,
    )
    if (found.keysMade > 0) print(`${found.keysMade} dedupe keys were made again from their messages.\n`)
  }
  print(`Check the new database, then start servers with it: INTRAY_DATABASE_URL=${printable(to)} ./intray doctor\n`)
}

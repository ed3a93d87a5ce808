// `./intray init`: makes the database. Apart from `serve`, no other command does, except one whose flag names the new database.

import { loadConfig } from '../../config.ts'
import { DatabaseMissing } from '../../store/contract/failure.ts'
import { openStore, publicUrl } from '../../store/open.ts'
import { command, CommandError } from '../command.ts'
import { JSON_FLAG } from '../flags.ts'
import { withSide } from '../open.ts'
import { print, printJson } from '../output.ts'
import { urlOf } from '../url-flag.ts'

export const init = command({
  about: `Makes an empty database at INTRAY_DATABASE_URL and says where it is. Refuses one that exists. Use it to make tokens and operators
before the first start of a server; './intray serve' makes a database too, if there is none.

Tenants move between databases that share one key of their dedupe digests: --key-from gives the new database that of another one.`,
  flags: {
    'key-from': { value: 'URL', about: 'A database whose dedupe key the new one shares.' },
    'key-from-file': { value: 'FILE', about: 'A file that holds the URL: every user of the machine can see flags.' },
    ...JSON_FLAG,
  },
  async run(values) {
    const { databaseUrl } = loadConfig(process.env)
    const name = publicUrl(databaseUrl)
    if (await exists(databaseUrl)) throw new CommandError(`There is a database already: ${name}. Nothing was changed.`)
    const keyFrom = urlOf(values['key-from'], values['key-from-file'], '--key-from')
    // Read first: without the key no database is made.
    const key =
      keyFrom === undefined ? null : await withSide(keyFrom, true, async (side) => (await side.identity()).dedupeKey)
    await (await openStore(databaseUrl, { role: 'tool' })).close()
    if (key) await withSide(databaseUrl, true, (side) => side.adoptKey(key))
    if (values.json) printJson({ ok: true, database: name })
    else print(`The database is new: ${name}\nStart a server: ./intray serve\n`)
  },
})

async function exists(url: string): Promise<boolean> {
  try {
    await (await openStore(url, { role: 'tool', mustExist: true })).close()
    return true
  } catch (error) {
    if (error instanceof DatabaseMissing) return false
    throw error
  }
}

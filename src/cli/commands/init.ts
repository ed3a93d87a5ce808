// `./intray init`: makes the database. Apart from `serve`, no other command does, except one whose flag names the new database.

import { loadConfig } from '../../config.ts'
import { DatabaseMissing } from '../../store/contract/failure.ts'
import { openStore, publicUrl } from '../../store/open.ts'
import { command, CommandError } from '../command.ts'
import { JSON_FLAG } from '../flags.ts'
import { print, printJson } from '../output.ts'

export const init = command({
  about: `Makes an empty database at INTRAY_DATABASE_URL and says where it is. Refuses one that exists. Use it to make tokens and operators
before the first start of a server; './intray serve' makes a database too, if there is none.`,
  flags: JSON_FLAG,
  async run(values) {
    const { databaseUrl } = loadConfig(process.env)
    const name = publicUrl(databaseUrl)
    if (await exists(databaseUrl)) throw new CommandError(`There is a database already: ${name}. Nothing was changed.`)
    await (await openStore(databaseUrl, { role: 'tool' })).close()
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

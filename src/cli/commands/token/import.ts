// `./intray token import`: takes over the tokens of an older system by their SHA-256, so that senders go on with those they have.

import { readFileSync, statSync } from 'node:fs'
import { importToken } from '../../../auth/import-tokens.ts'
import { waitUntilInEffect } from '../../../auth/token-lifecycle.ts'
import { type ListedToken, readTokenList } from '../../../auth/token-list-file.ts'
import { systemClock } from '../../../runtime/clock.ts'
import { recordCommand } from '../../audit.ts'
import { command, CommandError } from '../../command.ts'
import { JSON_FLAG } from '../../flags.ts'
import { withStore } from '../../open.ts'
import { inSteps, note, print, printJson } from '../../output.ts'

const MAX_FILE_BYTES = 64 * 1024 * 1024
const IN_EFFECT_TIMEOUT_MS = 10_000

export const tokenImport = command({
  args: 'FILE',
  about: `Takes over tokens of another system by their SHA-256. Senders go on with the tokens that they have.

FILE is CSV with a header, or one JSON object a line, with the fields name, account, company, scope, sha256 (64 hexadecimal digits, of
the token's bytes), expires (an ISO time) and key_id (only for tokens of another Intray). account, company and sha256 are required. The
whole file is checked before anything is stored. Importing it again changes nothing. The tokens are listed, disabled, limited and
rotated like others, by their key id. Returns when they work on every running server.`,
  flags: JSON_FLAG,
  async run(values, [file = '']) {
    const counts = { created: 0, present: 0, refused: 0 }
    await withStore(async (store) => {
      const listed = readList(file)
      await inSteps('import', async (say) => {
        for (const one of listed) {
          const { outcome, keyId } = await importToken(store.tokens, one, systemClock.now())
          counts[outcome] += 1
          if (outcome === 'created') await recordCommand(store, 'token_import', keyId, one)
          if (outcome === 'refused') note(refusal(one, keyId))
          say(`${counts.created + counts.present + counts.refused} of ${listed.length}`)
        }
      })
      if (counts.created > 0 && !(await waitUntilInEffect(store, IN_EFFECT_TIMEOUT_MS))) {
        throw new CommandError(
          'The tokens are stored, but a running server has not confirmed them. Look at its log; restart it to be sure.',
        )
      }
    })
    const isDone = counts.refused === 0
    if (values.json) printJson({ ok: isDone, ...counts })
    else print(`${counts.created} tokens imported, ${counts.present} were there already, ${counts.refused} refused.\n`)
    return isDone ? 0 : 1
  },
})

function readList(file: string): ListedToken[] {
  let text: string
  try {
    if (statSync(file).size > MAX_FILE_BYTES) throw new Error(`it is larger than ${MAX_FILE_BYTES} bytes; split it`)
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw new CommandError(`${file} cannot be read: ${(error as Error).message}.`)
  }
  try {
    return readTokenList(text)
  } catch (error) {
    throw new CommandError(`${(error as Error).message} No token was imported.`)
  }
}

function refusal({ line }: ListedToken, keyId: string): string {
  return `intray: line ${line} was not imported: token ${keyId} is here with another tenant, scope or digest. Look at it: ./intray token show ${keyId}`
}

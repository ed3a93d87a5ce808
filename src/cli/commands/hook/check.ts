// `./intray hook check`: explains what a recipe makes of a sample request, without a database.

import { loadConfig } from '../../../config.ts'
import { explain, explanationLines } from '../../../hooks/explanation.ts'
import { HOOK_STAND_IN, headerReader } from '../../../hooks/request.ts'
import { HOOK_PATH } from '../../../model/hook.ts'
import { newestRecipe } from '../../../model/recipes/built-in.ts'
import { systemClock } from '../../../runtime/clock.ts'
import { command, UsageError } from '../../command.ts'
import { JSON_FLAG } from '../../flags.ts'
import { readBytes, readRecipeFile, SECRET_FLAGS, secretOf } from '../../hook-store.ts'
import { print, printable, printJson } from '../../output.ts'

const MAX_SAMPLE_BYTES = 104_857_600

export const hookCheck = command({
  about: `Explains what a recipe makes of a sample request: its signature, each template, references, contact and text. Needs no database.
Exit code 1 if the request would be refused.

  ./intray hook check --recipe shop.yaml --sample order.json --header 'X-Shop-Id: 12'`,
  flags: {
    recipe: {
      value: 'FILE',
      about: 'A recipe file in JSON or YAML, or the name of a recipe that Intray brings.',
      isRequired: true,
    },
    sample: { value: 'FILE', about: 'The body of the request.', isRequired: true },
    header: {
      value: 'LINE',
      about: "A header of the request, such as 'X-Event: order'; may be given again.",
      multiple: true,
    },
    type: { value: 'TYPE', about: 'Its Content-Type [application/json].' },
    ...SECRET_FLAGS,
    ...JSON_FLAG,
  },
  async run(values) {
    const { recipe: name, sample } = values
    if (name === undefined || sample === undefined)
      throw new UsageError('hook check needs --recipe FILE and --sample FILE.')
    const recipe = newestRecipe(name) ?? readRecipeFile(name).recipe
    const contentType = values.type ?? 'application/json'
    const secret = secretOf(values)
    const request = {
      hook: HOOK_STAND_IN,
      target: `${HOOK_PATH}sample`,
      header: headerReader(['content-type', contentType, ...(values.header ?? []).flatMap(headerOf)]),
      contentType,
      payload: readBytes(sample, sample, MAX_SAMPLE_BYTES),
    }
    const { publicUrl } = loadConfig(process.env)
    const secrets = secret === undefined ? [] : [secret]
    const explanation = explain(recipe, request, { secrets, publicUrl, now: systemClock.now() })
    if (values.json) printJson(explanation)
    else for (const line of explanationLines(recipe, explanation)) print(`${printable(line)}\n`)
    const { signature, outcome } = explanation
    const isRefused = typeof signature === 'object' && !signature.ok
    return isRefused || (outcome.kind !== 'message' && outcome.kind !== 'challenge') ? 1 : 0
  },
})

function headerOf(line: string): [string, string] {
  const at = line.indexOf(':')
  if (at < 1) throw new UsageError(`--header takes a line such as 'X-Event: order'.`)
  return [line.slice(0, at).trim(), line.slice(at + 1).trim()]
}

// The checks of `./intray doctor` on sealed secrets: whether they open with the key in use, and who can read its file.

import { statSync } from 'node:fs'
import { openSecrets } from '../auth/hook-lifecycle.ts'
import type { Config } from '../config.ts'
import type { HookRecord } from '../model/hook.ts'
import { SecretUnreadable } from '../runtime/secret-box.ts'
import { type Secrets, SecretsKeyMissing } from '../runtime/secrets.ts'
import type { Store } from '../store/contract/store.ts'
import { secretsKeyFile } from '../store/open.ts'
import { type Check, ok, SHOWN, wrong } from './doctor-check.ts'
import { secretsOf } from './hook-store.ts'

const OTHERS = 0o007

/** The key file, if other users of the machine can open it. */
export function openKeyFile({ databaseUrl }: Config): { path: string; mode: number }[] {
  const path = secretsKeyFile(databaseUrl)
  const mode = path === null ? 0 : (statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o777
  return path === null || (mode & OTHERS) === 0 ? [] : [{ path, mode }]
}

/** Opens what is sealed, page by page: a hook that does not open takes no signed request. */
export async function sealedSecrets({ hooks }: Pick<Store, 'hooks'>, config: Config): Promise<Check> {
  const secrets = secretsOf(config)
  const unreadable: string[] = []
  let count = 0
  for (let after = ''; ; ) {
    const page = await hooks.list(after, SEALED_PAGE)
    for (const hook of page) if (!opens(secrets, hook)) unreadable.push(hook.keyId)
    count += page.length
    after = page.at(-1)?.keyId ?? ''
    if (page.length < SEALED_PAGE) break
  }
  if (count === 0) return ok('secrets', 'No hook has sealed secrets.')
  if (unreadable.length === 0) return ok('secrets', `The sealed secrets of ${count} hooks open with ${secrets.source}.`)
  const shown = unreadable.slice(0, SHOWN).join(', ')
  const summary = `The sealed secrets of ${unreadable.length} of ${count} hooks do not open with ${secrets.source}: ${shown}. Signed requests to them are answered 503.`
  const advice =
    'Put back the key from its copy (docs/operating/backup.md, "The key of secrets"). If it is lost, make these hooks again: ./intray hook create'
  return wrong('secrets', summary, advice)
}

const SEALED_PAGE = 500

function opens(secrets: Secrets, hook: HookRecord): boolean {
  try {
    openSecrets(secrets.box(), hook)
    return true
  } catch (error) {
    if (error instanceof SecretsKeyMissing || error instanceof SecretUnreadable) return false
    throw error
  }
}

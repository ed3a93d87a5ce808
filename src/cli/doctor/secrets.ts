// The checks of `./intray doctor` on sealed secrets: whether they open with the key in use, and who can read its file.

import { statSync } from 'node:fs'
import { openSecrets } from '../../auth/hook-lifecycle.ts'
import type { Config } from '../../config.ts'
import { SecretUnreadable } from '../../runtime/secret-box.ts'
import { SecretsKeyMissing } from '../../runtime/secrets.ts'
import type { Store } from '../../store/contract/store.ts'
import { secretsKeyFile } from '../../store/open.ts'
import { openTarget } from '../../processing/push/target.ts'
import { type Check, ok, SHOWN, wrong } from './check.ts'
import { secretsOf } from '../hook-store.ts'

const OTHERS = 0o007

/** The key file, if other users of the machine can open it. */
export function openKeyFile({ databaseUrl }: Config): { path: string; mode: number }[] {
  const path = secretsKeyFile(databaseUrl)
  const mode = path === null ? 0 : (statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o777
  return path === null || (mode & OTHERS) === 0 ? [] : [{ path, mode }]
}

/** Opens what is sealed: a hook that does not open takes no signed request, and nothing is pushed to such an endpoint. */
export async function sealedSecrets(store: Pick<Store, 'hooks' | 'endpoints'>, config: Config): Promise<Check> {
  const { hooks, endpoints } = store
  const secrets = secretsOf(config)
  const unreadable: string[] = []
  let count = 0
  for (let after = ''; ; ) {
    const page = await hooks.list(after, SEALED_PAGE)
    for (const hook of page) if (!opens(() => openSecrets(secrets.box(), hook))) unreadable.push(hook.keyId)
    count += page.length
    after = page.at(-1)?.keyId ?? ''
    if (page.length < SEALED_PAGE) break
  }
  const pushed = await endpoints.list(null)
  for (const one of pushed) if (!opens(() => openTarget(secrets.box(), one))) unreadable.push(`endpoint ${one.id}`)
  count += pushed.length
  if (count === 0) return ok('secrets', 'No hook and no endpoint has sealed secrets.')
  if (unreadable.length === 0)
    return ok('secrets', `The sealed secrets of ${count} hooks and endpoints open with ${secrets.source}.`)
  const shown = unreadable.slice(0, SHOWN).join(', ')
  const summary = `The sealed secrets of ${unreadable.length} of ${count} hooks and endpoints do not open with ${secrets.source}: ${shown}. Signed requests to such hooks are answered 503, and nothing is pushed to such endpoints.`
  const advice =
    'Put back the key from its copy (docs/operating/backup.md, "The key of secrets"). If it is lost, make them again: ./intray hook create, ./intray endpoint remove and set'
  return wrong('secrets', summary, advice)
}

const SEALED_PAGE = 500

function opens(open: () => unknown): boolean {
  try {
    open()
    return true
  } catch (error) {
    if (error instanceof SecretsKeyMissing || error instanceof SecretUnreadable) return false
    throw error
  }
}

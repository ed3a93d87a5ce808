// `./intray hook …`: addresses for senders that can set neither a token nor references. A command that changes a hook in use returns
// when the change is in effect on every running server. Every change is in the audit log.

import { hookSecretToMake } from '../../auth/tenant-hooks.ts'
import { hookView } from '../../hooks/hook-view.ts'
import { hookDeliveryViews } from '../../model/hook-delivery-view.ts'
import { tenantText } from '../../model/principal.ts'
import { needsSecret } from '../../model/recipes/recipe.ts'
import { BUILT_IN_RECIPES, vendorsSecret } from '../../model/recipes/built-in.ts'
import { type TokenRecord, tokenState } from '../../model/token.ts'
import { isoTime, systemClock } from '../../runtime/clock.ts'
import { wholeNumber } from '../../runtime/parameter.ts'
import type { Store } from '../../store/contract/store.ts'
import { recordCommand } from '../audit.ts'
import { type Command, command, CommandError, commandGroup, UsageError } from '../command.ts'
import { flag, JSON_FLAG, JSON_LINES_FLAG } from '../flags.ts'
import { checkSecret, hookJson, hooksOf, knownHook, SECRET_FLAGS, secretOf } from '../hook-store.ts'
import { withStore } from '../open.ts'
import { print, printJson, printList, table } from '../output.ts'
import { durationMs, EXPIRES_FLAG, expiry, inEffect } from '../token-flags.ts'
import { hookCheck } from './hook/check.ts'
import { hookCreate, printHook } from './hook/create.ts'
import { hookSendSample } from './hook/send-sample.ts'

const list = command({
  about: 'Lists the hooks of all tenants, or those that match all flags, without their addresses.',
  flags: {
    account: { value: 'N', about: 'Only hooks of this account.' },
    company: { value: 'N', about: 'Only hooks of this company.' },
    ...JSON_LINES_FLAG,
  },
  async run(values) {
    const number = wholeNumber(1, Number.MAX_SAFE_INTEGER)
    const filter = {
      kind: 'hook',
      accountId: flag('account', values.account, number),
      companyId: flag('company', values.company, number),
    } as const
    const now = systemClock.now()
    const found: TokenRecord[] = []
    await withStore(async ({ tokens }) => {
      for (let after: TokenRecord | undefined; ; ) {
        const page = await tokens.list({ filter, now, after })
        found.push(...page)
        after = page.at(-1)
        if (!after) break
      }
    })
    const time = (ms: number | null) => (ms === null ? '-' : isoTime(ms))
    printList(found, values.json === true, {
      jsonOf: (one) => ({ account_id: one.accountId, company_id: one.companyId, ...hookView(one, now) }),
      empty: 'No hooks. Create one: ./intray hook create --recipe telegram --account 1 --company 1',
      columns: {
        'KEY ID': ({ keyId }) => keyId,
        STATE: (one) => tokenState(one, now),
        TENANT: tenantText,
        RECIPE: ({ recipe }) => recipe ?? '-',
        SCOPE: ({ scope }) => scope,
        EXPIRES: ({ expiresAt }) => time(expiresAt),
        'LAST USED': ({ lastUsedAt }) => time(lastUsedAt),
        NAME: ({ label }) => label,
      },
    })
  },
})

const show = command({
  args: 'KEY_ID',
  about: 'Shows one hook: its address, which is a secret, what to do at the vendor, and its latest deliveries.',
  flags: JSON_FLAG,
  async run(values, [keyId = '']) {
    await withStore(async (store) => {
      const hooks = hooksOf(store)
      const found = await knownHook(hooks, keyId)
      const json = hookJson(found, hooks.open(found.hook))
      const deliveries = hookDeliveryViews(await hooks.deliveries(found.record, keyId))
      if (values.json) return printJson({ ...json, deliveries })
      printHook(json, null)
      print(`\nThe latest deliveries${deliveries.length === 0 ? ': none yet.' : ':'}\n`)
      const rows = deliveries.map((one) => [
        one.received_at,
        one.verdict,
        one.source_ref ?? '-',
        one.reason ?? one.snippet ?? '',
      ])
      if (rows.length > 0) print(table(['RECEIVED', 'VERDICT', 'SOURCE_REF', 'TEXT OR REASON'], rows))
    })
  },
})

const disable = activeCommand(false, 'Disables a hook: requests to it are answered 401 hook_disabled.')
const enable = activeCommand(true, 'Enables a hook that was disabled.')

const rotate = command({
  args: 'KEY_ID',
  about: `Replaces the secret of a hook under the same address, or with --address the address. The old one stops working at once, or after
--overlap. Without --secret-file and --secret-stdin, Intray makes the new secret, unless the vendor does. Returns when this is in effect on every running server.`,
  flags: {
    address: { about: 'Make a new address, with the same recipe, secrets, tenant and scope.' },
    ...SECRET_FLAGS,
    overlap: { value: 'TIME', about: 'How long the old one keeps working: 2s to 365d.' },
    ...EXPIRES_FLAG,
    ...JSON_FLAG,
  },
  async run(values, [keyId = '']) {
    const overlapMs = values.overlap === undefined ? null : durationMs(values.overlap, 'overlap')
    const given = secretOf(values)
    if (values.address && given !== undefined) throw new UsageError('--address keeps the secrets: give no secret.')
    if (!values.address && values.expires !== undefined) throw new UsageError('--expires belongs to --address.')
    const expiresAt = values.expires === undefined ? undefined : expiry(values.expires, systemClock.now())!
    const { json, made } = await inEffect((store) =>
      values.address
        ? newAddress(store, keyId, { overlapMs, expiresAt })
        : newSecret(store, keyId, { given, overlapMs }),
    )
    if (values.json) printJson({ ...json, secret: made })
    else printHook(json, made)
  },
})

async function newAddress(
  store: Store,
  keyId: string,
  terms: { overlapMs: number | null; expiresAt: number | undefined },
) {
  const hooks = hooksOf(store)
  const found = await knownHook(hooks, keyId)
  const rotated = await hooks.rotateAddress(found.record, terms)
  if ('successor' in rotated)
    throw new CommandError(
      `Hook ${keyId} was rotated already. Rotate its successor: ./intray hook rotate ${rotated.successor} --address`,
    )
  if ('hasExpired' in rotated)
    throw new CommandError(
      `Hook ${keyId} has expired, and its successor would be expired too. Add when it expires: --expires 30d`,
    )
  await recordCommand(store, 'hook_rotate', keyId, found.record)
  const { record, hook, opened } = rotated
  return { json: hookJson({ record, hook, recipe: found.recipe }, opened), made: null }
}

async function newSecret(
  store: Store,
  keyId: string,
  { given, overlapMs }: { given: string | undefined; overlapMs: number | null },
) {
  const hooks = hooksOf(store)
  const { recipe } = await knownHook(hooks, keyId)
  if (recipe === null || !needsSecret(recipe))
    throw new CommandError(
      `Hook ${keyId} has no secret: its address is the secret. Replace that: ./intray hook rotate ${keyId} --address`,
    )
  checkSecret(recipe, given)
  const made = given === undefined ? hookSecretToMake(recipe) : null
  const secret = given ?? made
  if (secret === null)
    throw new CommandError(
      `The vendor makes the secret of hook ${keyId} (${vendorsSecret(recipe)}). Make a new one there, and give it with --secret-stdin.`,
    )
  const changed = await hooks.rotateSecret(keyId, secret, overlapMs)
  if (!changed) throw new CommandError(`Hook ${keyId} is gone.`)
  await recordCommand(store, 'hook_rotate', keyId, changed.record)
  return { json: hookJson({ record: changed.record, hook: changed.hook, recipe }, changed.opened), made }
}

const recipes = command({
  about: 'Lists the recipes that Intray brings, with what to do at each vendor.',
  flags: JSON_LINES_FLAG,
  async run(values) {
    if (values.json) {
      for (const { name, version, title, guide } of BUILT_IN_RECIPES) printJson({ name, version, title, ...guide })
      return
    }
    for (const { name, title, guide } of BUILT_IN_RECIPES) {
      print(`${name}  ${title}\n`)
      for (const step of guide.steps) print(`    ${step}\n`)
    }
    print(
      '\nFor another sender, write a recipe file (docs/sending/custom-recipes.md), and try it: ./intray hook check --recipe FILE --sample BODY\n',
    )
  },
})

export const hook = commandGroup(
  'Manages hooks, addresses for senders that cannot set a token',
  'A hook is an address for a sender that can set neither a token nor references, such as Telegram, Stripe or a form builder.',
  { create: hookCreate, list, show, disable, enable, rotate, recipes, check: hookCheck, 'send-sample': hookSendSample },
)

function activeCommand(isActive: boolean, about: string): Command {
  return command({
    args: 'KEY_ID',
    about: `${about} Returns when this is in effect on every running server.`,
    flags: JSON_FLAG,
    async run(values, [keyId = '']) {
      const json = await inEffect(async (store) => {
        const hooks = hooksOf(store)
        const found = await knownHook(hooks, keyId)
        const record = (await hooks.setActive(keyId, isActive)) ?? found.record
        await recordCommand(store, isActive ? 'hook_enable' : 'hook_disable', keyId, record)
        return hookJson({ ...found, record }, hooks.open(found.hook))
      })
      if (values.json) printJson(json)
      else print(`Hook ${keyId} is ${json.state}.\n`)
    },
  })
}

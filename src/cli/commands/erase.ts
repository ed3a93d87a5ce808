// `./intray erase`: erases messages after showing how many there are, and waits until no file holds them.

import { createInterface } from 'node:readline/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { loadConfig } from '../../config.ts'
import { type Erased, Erasures } from '../../erasure/erasures.ts'
import { appendErasures } from '../../erasure/log-file.ts'
import type { ErasureSelector } from '../../model/erasure.ts'
import type { Tenant } from '../../model/principal.ts'
import { systemClock } from '../../runtime/clock.ts'
import { textUpTo, wholeNumber } from '../../runtime/parameter.ts'
import type { Store } from '../../store/contract/store.ts'
import { recordCommand } from '../audit.ts'
import { command, CommandError, UsageError } from '../command.ts'
import { coverIndex } from '../cover-index.ts'
import { flag, JSON_FLAG, MAX_ID, TENANT_FLAGS, tenantOf } from '../flags.ts'
import { withStore } from '../open.ts'
import { createProgress, print, printJson } from '../output.ts'

const MAX_UNITS = 512
const POLL_MS = 200
/** A purge that nothing delays takes less. */
const DELAYED_MS = 10_000

type Counts = Omit<Erased, 'next'>

export const erase = command({
  about: `Erases what senders wrote. A message goes with its revisions, the events promoted from them, its search words, the texts of its
history and refused requests of the same reference. Id, times and size stay, and the dedupe key: the same bytes sent again are a duplicate.

  ./intray erase --email ada@example.com --account 7 --company 42

Shows first how much it is, and asks. It cannot be undone. What backups and old row versions still hold: docs/operating/erase.md. If it is
interrupted, run it again.`,
  flags: {
    event: { value: 'ID', about: 'The message with this event or revision.' },
    conversation: { value: 'ID', about: 'All messages of a conversation.' },
    email: { value: 'ADDRESS', about: 'All messages of a contact. Needs the tenant.' },
    'source-ref': { value: 'REF', about: 'The message with this source_ref. Needs the tenant.' },
    account: { value: 'N', about: TENANT_FLAGS.account.about },
    company: { value: 'N', about: TENANT_FLAGS.company.about },
    'dry-run': { about: 'Only show how much it is.' },
    yes: { about: 'Do not ask.' },
    ...JSON_FLAG,
  },
  async run(values) {
    const selector = selectorOf(values)
    const { 'dry-run': dryRun = false, yes = false, json = false } = values
    if (!dryRun && !yes && !process.stdin.isTTY) {
      throw new UsageError('There is no terminal to ask on. Add --yes to erase, or --dry-run to see how much it is.')
    }
    const config = loadConfig(process.env)
    await withStore(async (store) => {
      const tenant = await tenantFor(store, selector, values)
      const erasures = new Erasures({ store, clock: systemClock })
      await coverIndex(store, config)
      const found = await allPages(erasures, tenant, selector, true)
      if (!json) print(`${textOf(found)}\n`)
      if (dryRun) {
        if (json) printJson({ dry_run: true, ...found })
        return
      }
      if (found.events + found.refusals > 0) {
        if (!yes && !(await confirmed())) throw new CommandError('Nothing was erased.')
        await recordCommand(store, 'erase', targetOf(selector), tenant)
        const erased = await allPages(erasures, tenant, selector, false)
        if (!json) print(`Erased ${textOf(erased)}.\n`)
        if (config.erasureLogTo !== null) await appendErasures(config.erasureLogTo, store.erasures)
      }
      await purge(store, tenant)
      if (json) printJson({ dry_run: false, ...found, pending: false })
      else print('Nothing of it is left in the index and the files of this database.\n')
    }, config)
  },
})

interface Given {
  readonly event?: string
  readonly conversation?: string
  readonly email?: string
  readonly 'source-ref'?: string
}

function selectorOf({ event, conversation, email, 'source-ref': sourceRef }: Given): ErasureSelector {
  const given = [event, conversation, email, sourceRef].filter((value) => value !== undefined)
  if (given.length !== 1) throw new UsageError('Give one of --event, --conversation, --email and --source-ref.')
  if (event !== undefined) return { event: flag('event', event, wholeNumber(1, MAX_ID))! }
  if (conversation !== undefined) return { conversation: flag('conversation', conversation, wholeNumber(1, MAX_ID))! }
  if (email !== undefined) return { email: flag('email', email, textUpTo(MAX_UNITS))! }
  return { sourceRef: flag('source-ref', sourceRef, textUpTo(MAX_UNITS))! }
}

/** An event names its tenant, and a conversation has the id of its first event. */
async function tenantFor(
  store: Store,
  selector: ErasureSelector,
  values: { readonly account?: string; readonly company?: string },
): Promise<Tenant> {
  const id = 'event' in selector ? selector.event : 'conversation' in selector ? selector.conversation : null
  const given = values.account ?? values.company
  if (id === null || given !== undefined) {
    const tenant = tenantOf(values)
    if (id !== null && !(await store.events.find(id, tenant))) throw new CommandError(`This tenant has no event ${id}.`)
    return tenant
  }
  const event = await store.events.find(id)
  if (!event) throw new CommandError(`There is no event ${id}.`)
  return { accountId: event.accountId, companyId: event.companyId }
}

async function allPages(
  erasures: Erasures,
  tenant: Tenant,
  selector: ErasureSelector,
  dryRun: boolean,
): Promise<Counts> {
  const sum = { messages: 0, events: 0, refusals: 0 }
  const refusals = erasures.refusalsOf(tenant)
  const progress = createProgress(dryRun ? 'count' : 'erase')
  for (let after: number | null = null; ; ) {
    const page: Erased = await erasures.page(tenant, { selector, dryRun, after }, refusals)
    sum.messages += page.messages
    sum.events += page.events
    sum.refusals += page.refusals
    progress.say(textOf(sum))
    after = page.next
    if (after === null) break
  }
  progress.end()
  return sum
}

const OVERWRITING = 'overwriting what the index and the files still hold'
const DELAYED = `${OVERWRITING}; a backup that is running delays it. Litestream prevents it: stop Litestream until this command has ended`

/** A running server purges; checked each time, so that this command takes over when the server stops. */
async function purge(store: Store, tenant: Tenant): Promise<void> {
  const progress = createProgress('purge')
  const delayedAt = performance.now() + DELAYED_MS
  while (await store.erasures.isPending(tenant)) {
    progress.say(performance.now() < delayedAt ? OVERWRITING : DELAYED)
    const isServed = (await store.nodes.live()).length > 0
    const { more, waits } = isServed ? { more: true, waits: true } : await store.erasures.purge()
    if (!more || waits) await pause(POLL_MS)
  }
  progress.end()
}

async function confirmed(): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return (await terminal.question('Erase this for good? Type yes: ')).trim() === 'yes'
  } finally {
    terminal.close()
  }
}

/** For the audit log, which keeps no address and no reference. */
function targetOf(selector: ErasureSelector): string {
  const [kind, value] = Object.entries(selector)[0]!
  return typeof value === 'number' ? `${kind} ${value}` : kind
}

function textOf({ messages, events, refusals }: Counts): string {
  return `${messages} messages (${events} events and revisions), ${refusals} refusals`
}

// `./intray event show`: what was stored, as it was stored.

import { parseArgs } from 'node:util'
import type { StoredEvent } from '../model/event.ts'
import { isoTime } from '../runtime/clock.ts'
import { StoreFailure } from '../store/contract/failure.ts'
import type { Store } from '../store/contract/store.ts'
import { type Command, CommandError, UsageError } from './command.ts'
import { withStore } from './open.ts'
import { print, printJson, record, table } from './output.ts'

const REVISIONS_SHOWN = 100

const HELP = `
Usage: ./intray event show ID [--raw | --json]

Shows what is stored of an event or a revision: when and how it came in, what the index made of it, how often it was
sent again.

  --raw   Write the payload's bytes to stdout, exactly as sent, and nothing else.
  --json  Print one JSON object.`

export const event: Command = {
  name: 'event',
  summary: 'Look at what was stored: event show ID [--raw].',
  help: HELP,
  async run(args) {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { raw: { type: 'boolean' }, json: { type: 'boolean' } },
    })
    const [action, idText = '', ...rest] = positionals
    const id = /^\d{1,15}$/.test(idText) ? Number(idText) : 0
    if (action !== 'show' || id === 0 || rest.length > 0) throw new UsageError('event takes: show ID.')
    await withStore(async (store) => {
      const found = await store.events.find(id)
      if (!found) throw new CommandError(`There is no event ${id}.`)
      if (values.raw) await writeRaw(store, id)
      else if (values.json) printJson(await describe(store, found))
      else await show(store, found)
    })
    return 0
  },
}

async function writeRaw(store: Store, id: number): Promise<void> {
  const payload = await readPayload(store, id)
  if (payload === null) throw new CommandError(`The content of event ${id} was erased.`)
  await new Promise<void>((resolve, reject) =>
    process.stdout.write(payload, (error) => (error ? reject(error) : resolve())),
  )
}

async function readPayload(store: Store, id: number): Promise<Uint8Array | null> {
  try {
    return await store.events.payload(id)
  } catch (error) {
    if (error instanceof StoreFailure) throw new CommandError(`The payload cannot be shown: ${error.message}.`)
    throw error
  }
}

async function describe(store: Store, found: StoredEvent) {
  const entry = await store.events.indexEntry(found)
  const repeats = await store.events.repeats(found)
  const revisions = await store.events.revisions(found.id, 0, REVISIONS_SHOWN)
  return {
    id: found.id,
    kind: found.kind,
    revises: found.revises,
    account_id: found.accountId,
    company_id: found.companyId,
    received_at: isoTime(found.receivedAt),
    source_ref: found.sourceRef,
    channel_ref: found.channelRef,
    idempotency_key: found.idempotencyKey,
    key_id: found.keyId,
    scope: found.scope,
    route: found.route,
    origin: found.origin,
    content_type: found.contentType,
    size: found.size,
    sha256: Buffer.from(found.sha256).toString('hex'),
    erased_at: found.erasedAt === null ? null : isoTime(found.erasedAt),
    request_id: found.requestId,
    traceparent: found.traceparent,
    user_agent: found.userAgent,
    remote_addr: found.remoteAddr,
    indexed: entry !== null,
    unindexed: entry?.unindexed ?? null,
    conversation_id: entry?.conversationId ?? null,
    contact_name: entry?.contactName ?? null,
    contact_email: entry?.contactEmail ?? null,
    message_type: entry?.messageType ?? null,
    snippet: entry?.snippet ?? null,
    warnings: entry?.warnings ?? [],
    resends: repeats?.resends ?? 0,
    revisions: repeats?.revisions ?? 0,
    last_seen_at: repeats === null ? null : isoTime(repeats.lastSeenAt),
    revision_ids: revisions.map((revision) => revision.id),
  }
}

async function show(store: Store, found: StoredEvent): Promise<void> {
  const { warnings, revision_ids: revisionIds, indexed, ...fields } = await describe(store, found)
  print(record({ ...fields, indexed: indexed ? 'yes' : 'not yet', revision_ids: revisionIds.join(', ') || null }))
  if (warnings.length > 0) {
    const rows = warnings.map((warning) => [warning.path, warning.expected, warning.got])
    print(
      `\nWarnings: fields that are kept, but are not what the interface describes\n${table(['PATH', 'EXPECTED', 'GOT'], rows)}`,
    )
  }
  print(`\nThe payload as sent: ./intray event show ${found.id} --raw\n`)
}

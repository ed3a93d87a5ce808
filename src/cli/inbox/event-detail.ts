// One stored event with its index entry, re-sends and revisions, for the commands that show events.

import { digestText } from '../../model/erasure.ts'
import type { StoredEvent } from '../../model/event.ts'
import { isoTime } from '../../runtime/clock.ts'
import { StoreFailure } from '../../store/contract/failure.ts'
import type { Store } from '../../store/contract/store.ts'
import { CommandError } from '../command.ts'
import { print, record, table } from '../output.ts'

const REVISIONS_SHOWN = 100

export type EventDetail = Awaited<ReturnType<typeof eventDetail>>

/** Writes the payload as sent to stdout. Damaged payloads are not shown. */
export async function writePayload(store: Store, { id }: StoredEvent): Promise<void> {
  const payload = await readPayload(store, id)
  if (payload === null) throw new CommandError(`The content of event ${id} was erased, so there is no payload to show.`)
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

/** All stored fields of an event or a revision, without its payload. */
export async function eventDetail(store: Store, found: StoredEvent) {
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
    sha256: digestText(found),
    erased_at: found.erasedAt === null ? null : isoTime(found.erasedAt),
    request_id: found.requestId,
    traceparent: found.traceparent,
    user_agent: found.userAgent,
    remote_addr: found.remoteAddr,
    recipe: found.recipe,
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

export function printEventDetail(detail: EventDetail): void {
  const { warnings, revision_ids: revisionIds, indexed, ...fields } = detail
  print(record({ ...fields, indexed: indexed ? 'yes' : 'not yet', revision_ids: revisionIds.join(', ') || null }))
  if (warnings.length > 0) {
    const rows = warnings.map((warning) => [warning.path, warning.expected, warning.got])
    print(
      `\nWarnings: these fields are stored as sent, but have another type than the interface describes\n${table(['PATH', 'EXPECTED', 'GOT'], rows)}`,
    )
  }
}

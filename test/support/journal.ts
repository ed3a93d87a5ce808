// What a database holds, looked at from outside the server, whether one is running or not.

import { mintToken } from '../../src/auth/token.ts'
import type { StoredEvent } from '../../src/model/event.ts'
import type { Store, StoreOptions } from '../../src/store/contract/store.ts'
import { openStore } from '../../src/store/open.ts'
import { until } from './until.ts'

export interface JournalRow {
  readonly event: StoredEvent
  readonly payload: Uint8Array | null
}

export async function withStore<T>(
  databaseUrl: string,
  use: (store: Store) => Promise<T>,
  role: StoreOptions['role'] = 'tool',
): Promise<T> {
  const store = await openStore(databaseUrl, { role })
  try {
    return await use(store)
  } finally {
    await store.close()
  }
}

/** Every row, in id order. */
export function readJournal(databaseUrl: string): Promise<JournalRow[]> {
  return withStore(databaseUrl, async (store) => {
    const rows: JournalRow[] = []
    const query = { tenant: null, throughId: await store.events.watermark(), limit: 500 }
    for (let afterId = 0; ; ) {
      const events = await store.transfer.rows({ ...query, afterId })
      for (const event of events) rows.push({ event, payload: await store.events.payload(event.id) })
      if (events.length === 0) return rows
      afterId = events.at(-1)!.id
    }
  })
}

/** Resolves when the index covers everything that is stored. */
export function untilIndexed(databaseUrl: string): Promise<boolean> {
  return withStore(databaseUrl, (store) =>
    until('the index covers the journal', async () => {
      const { lag, searchLag, clearing } = await store.index.progress()
      return lag === 0 && searchLag === 0 && !clearing
    }),
  )
}

/** The counts of conversations as the index has them, for the channels that the journal's events name. */
export async function conversationCounts(databaseUrl: string): Promise<{ indexed: Counts; rows: Counts }> {
  const journal = await readJournal(databaseUrl)
  const indexed: Counts = {}
  const rows: Counts = {}
  await withStore(databaseUrl, async (store) => {
    for (const { event } of journal) {
      const { channelRef } = event
      if (event.kind !== 'event' || channelRef === null) continue
      rows[channelRef] = (rows[channelRef] ?? 0) + 1
      indexed[channelRef] ??= (await store.events.conversation(event, channelRef))?.eventCount ?? 0
    }
  })
  return { indexed, rows }
}

type Counts = Record<string, number>

export interface NewTokenOptions {
  readonly accountId?: number
  readonly companyId?: number
  readonly scope?: string
  readonly expiresAt?: number | null
  readonly isActive?: boolean
}

/** Makes a token of account 7, company 42, scope cf, unless told otherwise. */
export async function createToken(store: Store, options: NewTokenOptions = {}): Promise<string> {
  const { accountId = 7, companyId = 42, scope = 'cf', expiresAt = null, isActive = true } = options
  const { keyId, token, hash } = mintToken()
  const createdAt = Date.now()
  const made = { keyId, hash, accountId, companyId, scope, label: '', expiresAt, createdAt, rotatedFrom: null }
  await store.tokens.create(made)
  if (!isActive) await store.tokens.setActive(keyId, false, createdAt)
  return token
}

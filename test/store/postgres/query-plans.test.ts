// Each read of the inbox goes by the index that was made for it: the first time, and once the server may have settled on one plan
// for all tenants. Asked of a database that is new, where the planner knows what the indexer told it, and again when it has
// looked at all of it.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import type { EventFilter } from '../../../src/store/contract/inbox.ts'
import { STATES } from '../../../src/model/processing.ts'
import type { Store } from '../../../src/store/contract/store.ts'
import { openStore } from '../../../src/store/open.ts'
import { item, NOON, TENANT } from '../rows.ts'
import { indexAll } from '../suite.ts'
import { newPostgresDatabase, withClient } from '../../support/postgres/databases.ts'

interface Seen {
  readonly text: string
  readonly values: unknown[]
}

test('every read of the inbox goes by its index', async (t) => {
  const url = await newPostgresDatabase()
  const store = await openStore(url, { role: 'tool' })
  t.after(() => store.close())
  const body = (n: number) => ({
    contact: { email: `user${n % 500}@example.org` },
    message: { type: 'text', text: `hello ref${n}` },
  })
  for (let from = 0; from < 6000; from += 1000) {
    const items = Array.from({ length: 1000 }, (_, k) => {
      const n = from + k
      return item({ sourceRef: `s${n}`, channelRef: `page/${n % 700}`, receivedAt: NOON + n, body: body(n) })
    })
    await store.journal.append(items)
  }
  // Many small tenants beside the large one: to a plan for all of them, a tenant has five events.
  const small = Array.from({ length: 1200 }, (_, n) =>
    item({ companyId: 1000 + n, sourceRef: `s${n}`, channelRef: 'page/1', body: body(n) }),
  )
  await store.journal.append(small)
  await store.journal.append([item({ sourceRef: 's5', body: { revised: true } })])
  await indexAll(store, { maxRows: 1000, maxBytes: 1 << 30 })

  await processSome(store)

  const seen: Seen[] = []
  const query = pg.Client.prototype.query as (...args: unknown[]) => unknown
  t.mock.method(pg.Client.prototype, 'query', function (this: pg.Client, ...args: unknown[]) {
    const config = args[0] as Partial<Seen>
    if (config.text !== undefined && config.values) seen.push(config as Seen)
    return query.apply(this, args)
  } as never)
  const rest: EventFilter = { scope: 'cf', messageType: 'text' }
  const conversation = (await store.events.conversation(TENANT, 'page/3'))!
  const reads: Record<string, [run: () => Promise<unknown>, indexes: string[]]> = {
    'all events': [() => store.inbox.events(TENANT, {}, null, 50), ['event_index_pkey', 'events_pkey']],
    'a scan': [() => store.inbox.events(TENANT, rest, null, 50), ['event_index_pkey']],
    'by time': [() => store.inbox.events(TENANT, { receivedBefore: NOON + 500 }, null, 50), ['events_by_time']],
    'by address': [
      () => store.inbox.events(TENANT, { contactEmail: 'user7@example.org', ...rest }, null, 50),
      ['events_by_email', 'events_pkey'],
    ],
    'by conversation': [
      () => store.inbox.events(TENANT, { channelRef: 'page/3' }, null, 50),
      ['conversations_pkey', 'events_by_conversation'],
    ],
    revisions: [() => store.inbox.events(TENANT, { kind: 'revision' }, null, 50), ['revisions_by_id']],
    'by source_ref': [
      () => store.inbox.events(TENANT, { sourceRef: 's5' }, null, 50),
      ['dedupe_pkey', 'revisions_in_order'],
    ],
    'by word': [() => store.inbox.events(TENANT, { words: ['ref77'] }, null, 50), ['event_words_by_word']],
    conversations: [
      () => store.inbox.conversations(TENANT, Number.MAX_SAFE_INTEGER, 50),
      ['conversations_by_activity'],
    ],
    'a conversation': [() => store.inbox.conversation(TENANT, conversation.id), ['conversations_pkey', 'events_pkey']],
    'its events': [
      () => store.inbox.conversationEvents(TENANT, conversation.id, 0, 50),
      ['events_by_conversation', 'event_index_pkey'],
    ],
    ...Object.fromEntries(
      STATES.map((is): [string, [() => Promise<unknown>, string[]]] => [
        is === 'done' ? 'a scan of the enqueued events' : `by state: ${is}`,
        [
          () => store.inbox.events(TENANT, { state: { is, subscription: 'default', now: NOON } }, null, 50),
          [is === 'done' ? 'event_index_pkey' : 'deliveries_by_state', 'deliveries_pkey'],
        ],
      ]),
    ),
    'by state beside another filter': [
      () => {
        const state = { is: 'done', subscription: 'default', now: NOON } as const
        return store.inbox.events(TENANT, { state, channelRef: 'page/3' }, null, 50)
      },
      ['events_by_conversation', 'deliveries_pkey'],
    ],
    'the last errors of events': [
      () =>
        store.processing.lastErrors(
          { tenant: TENANT, subscription: 'default' },
          Array.from({ length: 50 }, (_, n) => 2000 + n),
        ),
      ['delivery_history_pkey'],
    ],
    'traffic by minute': [() => store.traffic.minutes(TENANT, NOON), ['traffic_pkey']],
    'traffic by hour': [() => store.traffic.hours(TENANT, NOON), ['traffic_pkey']],
    'the depth of the queue': [
      () => store.traffic.queueDepth(TENANT, NOON),
      ['deliveries_by_state', 'event_index_pkey'],
    ],
    'counts of refusals': [() => store.traffic.refusalCounts(TENANT, NOON), ['refusals_pkey']],
    'tokens of a tenant': [() => store.tokens.listOf(TENANT, null, 50), ['tokens_by_tenant']],
    tenants: [() => store.tokens.tenants(null, 50), ['tokens_by_tenant']],
    'whether there is a tenant': [() => store.tokens.hasTenant(TENANT), ['tokens_by_tenant']],
    'a session': [() => store.operators.findSession(new Uint8Array(32), NOON), ['sessions_pkey', 'operators_pkey']],
    'the audit log': [() => store.operators.listAudit(null, 50), ['audit_pkey']],
    'an id that nobody has': [() => store.events.find(2 ** 40), ['events_pkey']],
    'what is too old': [
      () => {
        const request = { tenant: TENANT, before: NOON + 500, now: NOON, purgesUnprocessed: false, after: null }
        return store.retention.purgeStep({ ...request, dryRun: true })
      },
      ['events_by_time', 'events_pkey', 'event_index_pkey', 'deliveries_pkey', 'revisions_in_order'],
    ],
    'tenants with messages': [() => store.retention.tenants('events', null, 50), ['event_index']],
    'old history': [() => store.retention.countOld('history', TENANT, NOON, 50), ['delivery_history_by_age']],
    'old refusals': [() => store.retention.countOld('refusals', TENANT, NOON, 50), ['refusals_by_age']],
    'revisions of an event': [() => store.inbox.revisions(TENANT, 6, 0, 50), ['revisions_in_order']],
  }
  const checkAll = async () => {
    for (const [name, [run, indexes]] of Object.entries(reads)) {
      seen.length = 0
      await run()
      const plans = await explain(url, seen)
      for (const index of indexes) assert.ok(plans.includes(index), `${name} does not use ${index}:\n${plans}`)
      assert.doesNotMatch(plans, /Seq Scan on/, name)
      // Only a scan looks at rows that it does not show; its bound is another test's.
      if (!name.startsWith('a scan')) assert.doesNotMatch(plans, /Rows Removed by Filter: \d{3,}/, name)
    }
  }
  await checkAll()
  await withClient(url, (client) => client.query(`ANALYZE ${LARGE_TABLES}`))
  await checkAll()
})

const LARGE_TABLES = [
  'events',
  'event_index',
  'event_words',
  'conversations',
  'deliveries',
  'delivery_history',
  'lanes',
]
  .map((table) => `intray.${table}`)
  .join(', ')

/** Of several thousand that are enqueued, some in every state. */
async function processSome({ processing }: Store): Promise<void> {
  const queue = { tenant: TENANT, subscription: 'default', now: NOON }
  const rest = { maxBytes: 1 << 20, ordered: false, channelRef: null, keyId: 'k', maxAttempts: 9 }
  for (let n = 0; n < 12; n++) {
    const lease = { leaseId: `l${n}`, leaseExpiresAt: NOON + 1000 }
    const claimed = (await processing.claim({ ...queue, ...rest, ...lease, limit: 200 }))!
    const items = claimed.map(({ event, leaseId }) => ({ id: event.id, leaseId, delayMs: 0, error: 'no' }))
    if (n < 9) await processing.ack({ ...queue, items })
    else if (n < 11) await processing.release({ ...queue, items, maxAttempts: n === 9 ? 9 : 1, keyId: 'k', jitter: 0 })
  }
}

/** Of a prepared statement the server makes a plan each time, and from the sixth on one for all values if it thinks that no dearer. */
const RUNS = 7
const TELL_PLANS = `LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; SET auto_explain.log_analyze = on;
  SET auto_explain.log_timing = off; SET auto_explain.log_level = notice; SET enable_seqscan = off; SET jit = off`

async function explain(url: string, statements: readonly Seen[]): Promise<string> {
  const asked = statements.filter(({ text }) => text.startsWith('SELECT') || text.startsWith('WITH'))
  return withClient(url, async (client) => {
    const plans: string[] = []
    await client.query(TELL_PLANS)
    client.on('notice', ({ message }) => plans.push(String(message)))
    for (const [n, { text, values }] of asked.entries()) {
      for (let run = 0; run < RUNS; run++) await client.query({ name: `asked ${n}`, text, values })
    }
    assert.equal(plans.length, RUNS * asked.length, 'every plan is told')
    return plans.join('\n')
  })
}

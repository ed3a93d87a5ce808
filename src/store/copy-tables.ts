// The tables that a copy includes: all primary data, column by column, in an order in which they can be written.

import type { CopyTable } from './contract/copy.ts'
import { EVENT_COLUMN_TYPES } from './event-columns.ts'

/**
 * For tables with names that are unique: read in one statement, they are of one moment. Of two moments they could hold a name twice,
 * as one row lost it and another one took it.
 */
const ONE_PAGE = 50_000

const QUEUE = { company_id: 'integer', account_id: 'integer', subscription: 'integer' } as const

/** Processing state is copied as it is, including live leases. */
const PROCESSING_TABLES: readonly CopyTable[] = [
  {
    name: 'subscriptions',
    key: ['company_id', 'account_id', 'id'],
    page: ONE_PAGE,
    columns: {
      company_id: 'integer',
      account_id: 'integer',
      id: 'integer',
      name: 'text',
      created_at: 'integer',
      enqueued_up_to: 'integer',
      deleted_at: 'integer',
      max_attempts: 'integer',
      first_delay_ms: 'integer',
      max_delay_ms: 'integer',
    },
  },
  {
    name: 'deliveries',
    key: ['event_id', 'company_id', 'account_id', 'subscription'],
    page: 2000,
    columns: {
      ...QUEUE,
      event_id: 'integer',
      lane: 'integer',
      state: 'text',
      attempts: 'integer',
      available_at: 'integer',
      lease_id: 'text',
      lease_expires_at: 'integer',
      ordered: 'integer',
      key_id: 'text',
      settled_at: 'integer',
      entries: 'integer',
    },
  },
  {
    name: 'lanes',
    key: ['lane', 'company_id', 'account_id', 'subscription'],
    page: 2000,
    columns: {
      ...QUEUE,
      lane: 'integer',
      head: 'integer',
      ready_at: 'integer',
      open_at: 'integer',
      held: 'integer',
      done_count: 'integer',
      dead_count: 'integer',
    },
  },
  {
    name: 'delivery_history',
    key: ['event_id', 'company_id', 'account_id', 'subscription', 'number'],
    page: 1000,
    columns: {
      ...QUEUE,
      event_id: 'integer',
      number: 'integer',
      at: 'integer',
      what: 'text',
      state: 'text',
      attempts: 'integer',
      key_id: 'text',
      error: 'text',
    },
  },
  {
    name: 'endpoints',
    key: ['company_id', 'account_id', 'subscription'],
    page: 1000,
    columns: {
      ...QUEUE,
      id: 'text',
      is_active: 'integer',
      body: 'text',
      timeout_ms: 'integer',
      concurrency: 'integer',
      sealed: 'bytes',
      disabled_reason: 'text',
      created_at: 'integer',
      changed_at: 'integer',
      removed_at: 'integer',
      is_moved: 'integer',
      opened_at: 'integer',
      retry_at: 'integer',
      trips: 'integer',
      revision: 'integer',
      generation: 'integer',
    },
  },
]

/** Operators and the audit log. Sessions and sign-in links are not copied. */
const OPERATOR_TABLES: readonly CopyTable[] = [
  {
    name: 'operators',
    key: ['id'],
    page: ONE_PAGE,
    columns: {
      id: 'text',
      name: 'text',
      role: 'text',
      tenants: 'text',
      password: 'text',
      created_at: 'integer',
      disabled_at: 'integer',
    },
  },
  {
    name: 'audit',
    key: ['id'],
    page: 1000,
    columns: {
      id: 'text',
      at: 'integer',
      operator_id: 'text',
      operator: 'text',
      action: 'text',
      company_id: 'integer',
      account_id: 'integer',
      target: 'text',
      request_id: 'text',
      address: 'text',
    },
  },
]

/** Tables without a `size` column have small pages. */
export const COPY_TABLES: readonly CopyTable[] = [
  {
    name: 'id_gaps',
    key: ['after_id'],
    page: 1000,
    columns: { after_id: 'integer', before_id: 'integer', begun_at: 'integer' },
  },
  {
    name: 'tenant_gaps',
    key: ['company_id', 'account_id'],
    page: 1000,
    columns: { company_id: 'integer', account_id: 'integer', from_id: 'integer', after_id: 'integer' },
  },
  {
    name: 'tokens',
    key: ['created_at', 'key_id'],
    page: 1000,
    columns: {
      key_id: 'text',
      hash: 'bytes',
      account_id: 'integer',
      company_id: 'integer',
      scope: 'text',
      label: 'text',
      is_active: 'integer',
      expires_at: 'integer',
      created_at: 'integer',
      disabled_at: 'integer',
      last_used_at: 'integer',
      rotated_from: 'text',
      rate_limit: 'text',
      moved_to: 'text',
      recipe: 'text',
      generation: 'integer',
    },
  },
  {
    name: 'hooks',
    key: ['key_id'],
    page: 1000,
    columns: {
      key_id: 'text',
      company_id: 'integer',
      account_id: 'integer',
      max_body: 'integer',
      first_key_id: 'text',
      sealed: 'bytes',
    },
  },
  // Before events, which are indexed by them.
  {
    name: 'recipes',
    key: ['company_id', 'account_id', 'digest'],
    page: 100,
    columns: {
      company_id: 'integer',
      account_id: 'integer',
      digest: 'text',
      recipe: 'text',
      created_at: 'integer',
    },
  },
  {
    name: 'dedupe',
    key: ['company_id', 'digest'],
    page: 2000,
    columns: {
      company_id: 'integer',
      digest: 'bytes',
      event_id: 'integer',
      sha256: 'bytes',
      minted_key: 'bytes',
    },
  },
  {
    name: 'events',
    key: ['id'],
    page: 1000,
    follows: 'events',
    columns: EVENT_COLUMN_TYPES,
  },
  {
    name: 'resends',
    key: ['id'],
    page: 2000,
    follows: 'resends',
    columns: {
      id: 'integer',
      company_id: 'integer',
      event_id: 'integer',
      received_at: 'integer',
      key_id: 'text',
      request_id: 'text',
    },
  },
  {
    name: 'erasures',
    key: ['id'],
    page: 2000,
    columns: {
      id: 'integer',
      company_id: 'integer',
      account_id: 'integer',
      event_id: 'integer',
      erased_at: 'integer',
      digest: 'bytes',
      bytes: 'bytes',
    },
  },
  {
    name: 'retention_rules',
    key: ['company_id', 'account_id'],
    page: 1000,
    columns: {
      company_id: 'integer',
      account_id: 'integer',
      events: 'integer',
      refusals: 'integer',
      history: 'integer',
      unprocessed: 'text',
    },
  },
  {
    name: 'conversation_ids',
    key: ['company_id', 'account_id', 'channel_key'],
    page: 2000,
    columns: { company_id: 'integer', account_id: 'integer', channel_key: 'text', id: 'integer' },
  },
  {
    name: 'refusals',
    key: ['company_id', 'account_id', 'id'],
    page: 100,
    columns: {
      id: 'integer',
      account_id: 'integer',
      company_id: 'integer',
      received_at: 'integer',
      key_id: 'text',
      code: 'text',
      reason: 'text',
      route: 'text',
      request_id: 'text',
      headers: 'text',
      body_size: 'integer',
      body: 'bytes',
      accepted_as: 'integer',
      accepted_at: 'integer',
      accepted_by: 'text',
    },
  },
  ...PROCESSING_TABLES,
  ...OPERATOR_TABLES,
]

/** Payload bytes per page: a page of large rows holds fewer of them, but at least one. */
export const COPY_PAGE_BYTES = 8 * 1024 * 1024

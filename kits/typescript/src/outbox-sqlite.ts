// The outbox in a SQLite file, for runtimes that have node:sqlite. Any number of processes may share the file.

import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { CLAIM_MS, type NewMessage, type Outbox, type OutboxCounts, type OutboxRow } from './outbox.ts'

type Sqlite = typeof import('node:sqlite')

const SCHEMA_VERSION = 1
const SCHEMA = `
CREATE TABLE outbox (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  source_ref TEXT NOT NULL,
  channel_ref TEXT,
  traceparent TEXT,
  body BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  next_at INTEGER,
  claimed_until INTEGER NOT NULL DEFAULT 0,
  status TEXT NOT NULL DEFAULT 'waiting' CHECK (status IN ('waiting', 'sent', 'refused')),
  last_error TEXT,
  sent_at INTEGER
);
CREATE INDEX outbox_due ON outbox (next_at, id) WHERE status = 'waiting' AND next_at IS NOT NULL;
CREATE INDEX outbox_channel ON outbox (channel_ref, id) WHERE status = 'waiting' AND channel_ref IS NOT NULL;
CREATE INDEX outbox_channel_due ON outbox (channel_ref) WHERE status = 'waiting' AND channel_ref IS NOT NULL AND next_at IS NOT NULL;
CREATE INDEX outbox_waiting ON outbox (id) WHERE status = 'waiting';
CREATE INDEX outbox_refused ON outbox (id) WHERE status = 'refused';
CREATE INDEX outbox_sent ON outbox (sent_at) WHERE status = 'sent';
PRAGMA user_version = ${SCHEMA_VERSION};
`

const ADD = `
INSERT INTO outbox (source_ref, channel_ref, traceparent, body, created_at, next_at)
SELECT :source_ref, :channel_ref, :traceparent, :body, :now,
  CASE WHEN EXISTS (SELECT 1 FROM outbox WHERE status = 'waiting' AND channel_ref = :channel_ref) THEN NULL ELSE :now END`
// A claimed row is due again when its claim ends: so the first due rows are never those that others hold.
const CLAIM = `
UPDATE outbox SET claimed_until = :until, next_at = :until, attempts = attempts + 1
WHERE id IN (
  SELECT id FROM outbox WHERE status = 'waiting' AND next_at IS NOT NULL AND next_at <= :now AND claimed_until <= :now
  ORDER BY next_at, id LIMIT :limit)
RETURNING *`
const SENT = `
UPDATE outbox SET status = 'sent', sent_at = :now, claimed_until = 0, next_at = NULL, last_error = NULL
WHERE id = :id AND status <> 'sent'`
const RETRY = `
UPDATE outbox SET claimed_until = 0, last_error = :error,
  next_at = CASE WHEN EXISTS (
    SELECT 1 FROM outbox earlier WHERE earlier.status = 'waiting' AND earlier.channel_ref = outbox.channel_ref AND earlier.id < outbox.id
  ) THEN NULL ELSE :nextAt END
WHERE id = :id AND status = 'waiting' AND claimed_until = :claimedUntil`
const REFUSED = `
UPDATE outbox SET status = 'refused', claimed_until = 0, next_at = NULL, last_error = :error
WHERE id = :id AND status = 'waiting' AND claimed_until = :claimedUntil`
// At most one row of a channel has a time: the one that is claimed or may be. When there is none, the first one gets it.
const WAKE = `
UPDATE outbox SET next_at = :now
WHERE id = (SELECT id FROM outbox WHERE status = 'waiting' AND channel_ref = :channel ORDER BY id LIMIT 1)
  AND NOT EXISTS (SELECT 1 FROM outbox WHERE status = 'waiting' AND channel_ref = :channel AND next_at IS NOT NULL)`
const RESEND = `
UPDATE outbox SET status = 'waiting', next_at = CASE WHEN channel_ref IS NULL THEN :now END
WHERE id = :id AND status = 'refused' RETURNING channel_ref`
// A row that is sent again comes before the later ones of its channel, unless one of them is under way.
const HOLD_BACK = `
UPDATE outbox SET next_at = NULL
WHERE status = 'waiting' AND channel_ref = :channel AND id > :id AND next_at IS NOT NULL AND claimed_until = 0`

const CORRECT_TIMES = `
UPDATE outbox SET next_at = :now, claimed_until = 0 WHERE status = 'waiting' AND next_at > :latest`

/** For the test that no statement reads rows that do not concern it. */
export const STATEMENTS = { ADD, CLAIM, SENT, RETRY, REFUSED, WAKE, RESEND, HOLD_BACK, CORRECT_TIMES }

interface Job {
  readonly run: () => unknown
  readonly resolve: (value: never) => void
  readonly reject: (error: unknown) => void
}

export class SqliteOutbox implements Outbox {
  readonly #database: DatabaseSync
  readonly #statements = new Map<string, StatementSync>()
  #jobs: Job[] = []

  constructor(sqlite: Sqlite, path: string) {
    this.#database = new sqlite.DatabaseSync(path)
    this.#database.exec('PRAGMA busy_timeout = 10000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
    this.#transaction(() => this.#migrate(path))
  }

  #migrate(path: string): void {
    const { user_version: version } = this.#database.prepare('PRAGMA user_version').get() as { user_version: number }
    if (version === SCHEMA_VERSION) return
    if (version > SCHEMA_VERSION)
      throw new Error(`The outbox ${path} was made by a newer client. Update @intray/client.`)
    this.#database.exec(SCHEMA)
  }

  add(message: NewMessage, now: number): Promise<void> {
    const { source_ref, channel_ref, traceparent, body } = message
    return this.#write(() => void this.#run(ADD, { source_ref, channel_ref, traceparent, body, now }))
  }

  claim(limit: number, now: number): Promise<readonly OutboxRow[]> {
    // Most looks find nothing, and need no transaction.
    const nextAt = this.nextAt()
    if (nextAt === null || nextAt > now) return Promise.resolve([])
    return this.#write(() => {
      const rows = this.#statement(CLAIM).all({ limit, now, until: now + CLAIM_MS }) as unknown as OutboxRow[]
      return rows.sort((a, b) => a.id - b.id)
    })
  }

  sent(row: OutboxRow, now: number): Promise<void> {
    return this.#write(() => {
      this.#run(SENT, { id: row.id, now })
      this.#wake(row.channel_ref, now)
    })
  }

  retry(row: OutboxRow, nextAt: number, error: string, now: number): Promise<void> {
    return this.#write(() => {
      this.#run(RETRY, { id: row.id, nextAt, error, claimedUntil: row.claimed_until })
      this.#wake(row.channel_ref, now)
    })
  }

  refused(row: OutboxRow, error: string, now: number): Promise<void> {
    return this.#write(() => {
      this.#run(REFUSED, { id: row.id, error, claimedUntil: row.claimed_until })
      this.#wake(row.channel_ref, now)
    })
  }

  resend(id: number, now: number): Promise<boolean> {
    return this.#write(() => {
      const row = this.#statement(RESEND).get({ id, now }) as { channel_ref: string | null } | undefined
      if (row && row.channel_ref !== null) {
        this.#run(HOLD_BACK, { id, channel: row.channel_ref })
        this.#wake(row.channel_ref, now)
      }
      return row !== undefined
    })
  }

  correctTimes(latest: number, now: number): Promise<void> {
    return this.#write(() => this.#run(CORRECT_TIMES, { latest, now }))
  }

  nextAt(): number | null {
    const sql = `SELECT next_at FROM outbox WHERE status = 'waiting' AND next_at IS NOT NULL ORDER BY next_at LIMIT 1`
    const row = this.#statement(sql).get() as { next_at: number } | undefined
    return row?.next_at ?? null
  }

  counts(): OutboxCounts {
    const sql = `SELECT
      (SELECT count(*) FROM outbox WHERE status = 'waiting') AS waiting,
      (SELECT count(*) FROM outbox WHERE status = 'refused') AS refused,
      (SELECT created_at FROM outbox WHERE status = 'waiting' ORDER BY id LIMIT 1) AS oldest_at`
    return { ...(this.#statement(sql).get() as unknown as OutboxCounts) }
  }

  async listRefused(afterId: number, limit: number): Promise<readonly OutboxRow[]> {
    const sql = `SELECT * FROM outbox WHERE status = 'refused' AND id > ? ORDER BY id LIMIT ?`
    return this.#statement(sql).all(afterId, limit) as unknown as OutboxRow[]
  }

  prune(sentBefore: number): Promise<void> {
    const sql = `DELETE FROM outbox WHERE status = 'sent' AND sent_at < :sentBefore`
    return this.#write(() => this.#run(sql, { sentBefore }))
  }

  /** After all changes. */
  async close(): Promise<void> {
    await this.#write(() => {})
    this.#database.close()
  }

  #wake(channel: string | null, now: number): void {
    if (channel !== null) this.#run(WAKE, { channel, now })
  }

  #run(sql: string, values: Record<string, string | number | Uint8Array | null>): void {
    this.#statement(sql).run(values)
  }

  #statement(sql: string): StatementSync {
    let statement = this.#statements.get(sql)
    if (!statement) this.#statements.set(sql, (statement = this.#database.prepare(sql)))
    return statement
  }

  /** Group commit: the changes of one turn of the event loop share a transaction and its sync. */
  #write<T>(run: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#jobs.push({ run, resolve, reject })
      if (this.#jobs.length === 1) setImmediate(() => this.#commit())
    })
  }

  #commit(): void {
    const jobs = this.#jobs
    this.#jobs = []
    try {
      const results = this.#transaction(() => jobs.map((job) => job.run()))
      jobs.forEach((job, index) => void job.resolve(results[index] as never))
    } catch (error) {
      for (const job of jobs) job.reject(error)
    }
  }

  #transaction<T>(run: () => T): T {
    this.#database.exec('BEGIN IMMEDIATE')
    try {
      const result = run()
      this.#database.exec('COMMIT')
      return result
    } catch (error) {
      if (this.#database.isTransaction !== false) this.#database.exec('ROLLBACK')
      throw error
    }
  }
}

-- Schema of the journal file. All of it is primary data; the index has a file of its own (index/index.sql).

-- The journal ------------------------------------------------------------------------------------------------------------

CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- The last id given out, so that ids are never reused. AUTOINCREMENT would write its row at every insert; this row is
-- written once per batch.
CREATE TABLE sequences (
  name  TEXT    PRIMARY KEY,
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO sequences (name, value) VALUES ('events', 0), ('resends', 0);

-- Ids above after_id and below before_id were given out, if at all, by another state of this database: restores begin above them.
CREATE TABLE id_gaps (
  after_id  INTEGER PRIMARY KEY,
  before_id INTEGER NOT NULL,
  begun_at  INTEGER NOT NULL
) STRICT;

-- Tenants that were moved here from another database, which gave out their ids below after_id. Ids above from_id and below after_id
-- were not given out here: a move jumps.
CREATE TABLE tenant_gaps (
  company_id INTEGER NOT NULL,
  account_id INTEGER NOT NULL,
  from_id    INTEGER NOT NULL,
  after_id   INTEGER NOT NULL,
  PRIMARY KEY (company_id, account_id)
) STRICT, WITHOUT ROWID;

-- One row per first arrival ('event') and per re-send with other bytes: a 'revision', or an 'event' if the first was
-- purged.
-- The payload is the last column, so that reading the others skips its pages.
CREATE TABLE events (
  id              INTEGER PRIMARY KEY,
  kind            TEXT    NOT NULL CHECK (kind IN ('event', 'revision')),
  revises         INTEGER,
  account_id      INTEGER NOT NULL,
  company_id      INTEGER NOT NULL,
  received_at     INTEGER NOT NULL,
  key_id          TEXT    NOT NULL,
  scope           TEXT    NOT NULL,
  route           TEXT    NOT NULL,
  source_ref      TEXT,
  channel_ref     TEXT,
  idempotency_key TEXT,
  content_type    TEXT    NOT NULL,
  size            INTEGER NOT NULL,
  sha256          BLOB    NOT NULL,
  erased_at       INTEGER,
  origin          TEXT    NOT NULL,
  request_id      TEXT    NOT NULL,
  traceparent     TEXT,
  user_agent      TEXT,
  remote_addr     TEXT,
  -- By which a hook read it; NULL: the sender's own source_ref, in the JSON of the inbox.
  recipe          TEXT,
  payload         BLOB
) STRICT;

-- Finds a revision by its bytes, and lists an event's revisions in id order (the rowid is the last column of every
-- index).
CREATE UNIQUE INDEX revisions_by_bytes ON events (revises, sha256) WHERE revises IS NOT NULL;
CREATE INDEX revisions_in_order ON events (revises) WHERE revises IS NOT NULL;

-- The latest deliveries of a hook. Other events have no row in it.
CREATE INDEX events_by_hook ON events (key_id) WHERE recipe IS NOT NULL;

-- A re-send whose bytes are already stored.
CREATE TABLE resends (
  id          INTEGER PRIMARY KEY,
  company_id  INTEGER NOT NULL,
  event_id    INTEGER NOT NULL,
  received_at INTEGER NOT NULL,
  key_id      TEXT    NOT NULL,
  request_id  TEXT    NOT NULL
) STRICT;

CREATE INDEX resends_by_event ON resends (event_id);

-- Dedupe keys. The primary key makes a message unique for ever; a key outlives its event. sha256: an HMAC once the event is
-- erased or purged; empty without a reference.
CREATE TABLE dedupe (
  company_id INTEGER NOT NULL,
  digest     BLOB    NOT NULL,
  event_id   INTEGER NOT NULL,
  sha256     BLOB    NOT NULL,
  minted_key BLOB    NOT NULL,
  PRIMARY KEY (company_id, digest)
) STRICT, WITHOUT ROWID;

-- The erasure log: one row per erased event or revision. digest: its dedupe key, NULL without a reference. bytes: the HMAC
-- in place of its SHA-256.
CREATE TABLE erasures (
  id         INTEGER PRIMARY KEY,
  company_id INTEGER NOT NULL,
  account_id INTEGER NOT NULL,
  event_id   INTEGER NOT NULL,
  erased_at  INTEGER NOT NULL,
  digest     BLOB,
  bytes      BLOB    NOT NULL
) STRICT;

CREATE INDEX erasures_by_tenant ON erasures (company_id, account_id, id);

-- Retention --------------------------------------------------------------------------------------------------------------

-- Tenant 0, 0: the default of all others. Days; 0: never; NULL: as the default. unprocessed: whether messages go that some
-- subscription has not processed.
CREATE TABLE retention_rules (
  company_id  INTEGER NOT NULL,
  account_id  INTEGER NOT NULL,
  events      INTEGER,
  refusals    INTEGER,
  history     INTEGER,
  unprocessed TEXT CHECK (unprocessed IN ('keep', 'purge')),
  PRIMARY KEY (company_id, account_id)
) STRICT, WITHOUT ROWID;

-- Rows that retention deleted and the index may still hold. Deleted once the index has followed.
CREATE TABLE purges (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  company_id INTEGER NOT NULL,
  account_id INTEGER NOT NULL,
  event_id   INTEGER NOT NULL
) STRICT;

-- The ids of conversations that lost events: an index that is built afterwards cannot take them from their first events.
CREATE TABLE conversation_ids (
  company_id  INTEGER NOT NULL,
  account_id  INTEGER NOT NULL,
  channel_key TEXT    NOT NULL,
  id          INTEGER NOT NULL,
  PRIMARY KEY (company_id, account_id, channel_key)
) STRICT, WITHOUT ROWID;

CREATE INDEX conversation_ids_by_id ON conversation_ids (company_id, account_id, id);

-- Tokens, nodes, refusals ------------------------------------------------------------------------------------------------

CREATE TABLE tokens (
  key_id       TEXT    PRIMARY KEY,
  hash         BLOB    NOT NULL,
  account_id   INTEGER NOT NULL,
  company_id   INTEGER NOT NULL,
  scope        TEXT    NOT NULL,
  label        TEXT    NOT NULL,
  is_active    INTEGER NOT NULL CHECK (is_active IN (0, 1)),
  expires_at   INTEGER,
  created_at   INTEGER NOT NULL,
  disabled_at  INTEGER,
  last_used_at INTEGER,
  rotated_from TEXT,
  -- Its tenant was moved to another database: the address in the answer to its senders, or ''.
  moved_to     TEXT,
  -- The token's own limit as text: 100/1s, or off. NULL: the setting applies.
  rate_limit   TEXT,
  -- Of a hook, such as telegram/1. NULL: a bearer token.
  recipe       TEXT,
  generation   INTEGER NOT NULL
) STRICT;

CREATE INDEX tokens_by_generation ON tokens (generation);
CREATE INDEX tokens_by_tenant ON tokens (company_id, account_id, created_at, key_id);
-- A token has one successor.
CREATE UNIQUE INDEX tokens_by_predecessor ON tokens (rotated_from) WHERE rotated_from IS NOT NULL;

-- What a hook has beside its token. sealed: its address and the secrets of its signatures, encrypted (runtime/secret-box.ts).
-- max_body: NULL: the setting applies.
-- first_key_id: the key id that the hook had before any rotation of its address.
CREATE TABLE hooks (
  key_id       TEXT    PRIMARY KEY,
  company_id   INTEGER NOT NULL,
  account_id   INTEGER NOT NULL,
  max_body     INTEGER,
  first_key_id TEXT    NOT NULL,
  sealed       BLOB    NOT NULL
) STRICT, WITHOUT ROWID;

-- Custom recipes, which events name by digest: kept for ever, so that the index can be built again.
CREATE TABLE recipes (
  company_id INTEGER NOT NULL,
  account_id INTEGER NOT NULL,
  digest     TEXT    NOT NULL,
  recipe     TEXT    NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (company_id, account_id, digest)
) STRICT, WITHOUT ROWID;

CREATE TABLE nodes (
  node_id          TEXT    PRIMARY KEY,
  token_generation INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE refusals (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id  INTEGER NOT NULL,
  company_id  INTEGER NOT NULL,
  received_at INTEGER NOT NULL,
  key_id      TEXT    NOT NULL,
  code        TEXT    NOT NULL,
  -- The sentence of its answer, if it says more than the code.
  reason      TEXT,
  route       TEXT    NOT NULL,
  request_id  TEXT    NOT NULL,
  headers     TEXT    NOT NULL,
  body_size   INTEGER NOT NULL,
  body        BLOB    NOT NULL,
  -- The event created when an operator accepted it.
  accepted_as INTEGER,
  accepted_at INTEGER,
  accepted_by TEXT
) STRICT;

CREATE INDEX refusals_by_tenant ON refusals (company_id, account_id, id);
CREATE INDEX refusals_by_key ON refusals (company_id, account_id, key_id, id);
CREATE INDEX refusals_by_age ON refusals (company_id, account_id, received_at);

-- Processing: written by processing alone, never touched by a rebuild of the index ----------------------------------------

-- One consumer's view of a tenant's queue. Id 0 is `default`, which every tenant has; its row is inserted at first use.
-- enqueued_up_to: index entries up to this id are enqueued. deleted_at: its rows are being deleted. max_attempts and the
-- delays after failures: null where it has the default.
CREATE TABLE subscriptions (
  company_id     INTEGER NOT NULL,
  account_id     INTEGER NOT NULL,
  id             INTEGER NOT NULL,
  name           TEXT    NOT NULL,
  created_at     INTEGER NOT NULL,
  enqueued_up_to INTEGER NOT NULL,
  deleted_at     INTEGER,
  max_attempts   INTEGER,
  first_delay_ms INTEGER,
  max_delay_ms   INTEGER,
  PRIMARY KEY (company_id, account_id, id)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX subscriptions_by_name ON subscriptions (company_id, account_id, name) WHERE deleted_at IS NULL;

-- Keys begin with the event or the lane: a planner without statistics would take the tenant for their most selective
-- part. The queue indexes below begin with the tenant.

-- The state of an event in a subscription. The row exists once the event is enqueued.
CREATE TABLE deliveries (
  company_id       INTEGER NOT NULL,
  account_id       INTEGER NOT NULL,
  subscription     INTEGER NOT NULL,
  event_id         INTEGER NOT NULL,
  lane             INTEGER NOT NULL,
  state            TEXT    NOT NULL CHECK (state IN ('pending', 'leased', 'done', 'dead')),
  attempts         INTEGER NOT NULL,
  available_at     INTEGER NOT NULL,
  lease_id         TEXT,
  lease_expires_at INTEGER,
  ordered          INTEGER NOT NULL,
  key_id           TEXT,
  settled_at       INTEGER,
  entries          INTEGER NOT NULL,
  PRIMARY KEY (event_id, company_id, account_id, subscription)
) STRICT, WITHOUT ROWID;

-- A lane's unsettled deliveries: the leased ones, and the pending ones in order.
CREATE INDEX deliveries_by_lane ON deliveries (lane, company_id, account_id, subscription, state, event_id)
  WHERE settled_at IS NULL;
-- When the first pending delivery of a lane becomes available, however many wait. Only queries that name `entries >= 0`,
-- which is always true, can use it: others look for the lowest event.
CREATE INDEX deliveries_by_time ON deliveries (lane, company_id, account_id, subscription, available_at)
  WHERE entries >= 0 AND state = 'pending';
-- Lists by state. Without `done`, which nearly all events reach: those are found by scanning down from enqueued_up_to.
-- `entries >= 0` is always true; only queries that name it can use this index. Otherwise the planner would choose it,
-- since it begins with the tenant, to look up an event or a lane.
CREATE INDEX deliveries_by_state ON deliveries (company_id, account_id, subscription, state, event_id)
  WHERE entries >= 0 AND state <> 'done';

-- head: the lowest event that is not final. ready_at: when an ordered claim may take it; null if the lane is idle.
-- open_at: when an unordered claim may take an event, if earlier. held: under an ordered lease (1), under unordered
-- ones (2), under none (0).
CREATE TABLE lanes (
  company_id   INTEGER NOT NULL,
  account_id   INTEGER NOT NULL,
  subscription INTEGER NOT NULL,
  lane         INTEGER NOT NULL,
  head         INTEGER,
  ready_at     INTEGER,
  open_at      INTEGER,
  held         INTEGER NOT NULL,
  done_count   INTEGER NOT NULL,
  dead_count   INTEGER NOT NULL,
  PRIMARY KEY (lane, company_id, account_id, subscription)
) STRICT, WITHOUT ROWID;

-- The queue: lanes in hand-out order. An expired lease needs no update: its ready_at has passed.
CREATE INDEX lanes_ready ON lanes (company_id, account_id, subscription, ready_at, head) WHERE ready_at IS NOT NULL;
CREATE INDEX lanes_open ON lanes (company_id, account_id, subscription, open_at, head) WHERE open_at IS NOT NULL;

-- Failed hand-outs and requeues.
CREATE TABLE delivery_history (
  company_id   INTEGER NOT NULL,
  account_id   INTEGER NOT NULL,
  subscription INTEGER NOT NULL,
  event_id     INTEGER NOT NULL,
  number       INTEGER NOT NULL,
  at           INTEGER NOT NULL,
  what         TEXT    NOT NULL,
  state        TEXT    NOT NULL,
  attempts     INTEGER NOT NULL,
  key_id       TEXT,
  error        TEXT,
  PRIMARY KEY (event_id, company_id, account_id, subscription, number)
) STRICT, WITHOUT ROWID;

-- Only for retention, which names `number >= 0`, which is always true.
CREATE INDEX delivery_history_by_age ON delivery_history (company_id, account_id, at) WHERE number >= 0;

-- Push: the URLs that subscriptions are delivered to. sealed: URL, headers and signing secrets; empty once removed. disabled_reason:
-- the service disabled it. opened_at, retry_at, trips: its circuit. is_moved: its tenant is moved to another database. A removed
-- row stays, so that every node learns of it.
CREATE TABLE endpoints (
  company_id      INTEGER NOT NULL,
  account_id      INTEGER NOT NULL,
  subscription    INTEGER NOT NULL,
  id              TEXT    NOT NULL,
  is_active       INTEGER NOT NULL CHECK (is_active IN (0, 1)),
  body            TEXT    NOT NULL CHECK (body IN ('event', 'raw')),
  timeout_ms      INTEGER NOT NULL,
  concurrency     INTEGER NOT NULL,
  sealed          BLOB    NOT NULL,
  disabled_reason TEXT,
  created_at      INTEGER NOT NULL,
  changed_at      INTEGER NOT NULL,
  removed_at      INTEGER,
  is_moved        INTEGER NOT NULL CHECK (is_moved IN (0, 1)),
  opened_at       INTEGER,
  retry_at        INTEGER,
  trips           INTEGER NOT NULL,
  revision        INTEGER NOT NULL,
  generation      INTEGER NOT NULL,
  PRIMARY KEY (company_id, account_id, subscription)
) STRICT, WITHOUT ROWID;

CREATE INDEX endpoints_by_generation ON endpoints (generation);

-- The latest requests to an endpoint, as a JSON list. Only to be looked at: not copied, and without anything of the event.
CREATE TABLE endpoint_attempts (
  company_id   INTEGER NOT NULL,
  account_id   INTEGER NOT NULL,
  subscription INTEGER NOT NULL,
  attempts     TEXT    NOT NULL,
  PRIMARY KEY (company_id, account_id, subscription)
) STRICT, WITHOUT ROWID;

-- The console: operators and what they did. Belongs to the installation and to no tenant -----------------------------------

-- tenants: a JSON array of [account, company]; null: all. password: an encoded hash; null: signs in by link.
CREATE TABLE operators (
  id          TEXT    PRIMARY KEY,
  name        TEXT    NOT NULL UNIQUE,
  role        TEXT    NOT NULL CHECK (role IN ('viewer', 'admin')),
  tenants     TEXT,
  password    TEXT,
  created_at  INTEGER NOT NULL,
  disabled_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
  hash        BLOB    PRIMARY KEY,
  operator_id TEXT    NOT NULL,
  created_at  INTEGER NOT NULL,
  expires_at  INTEGER NOT NULL,
  seen_at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX sessions_by_operator ON sessions (operator_id, created_at);
CREATE INDEX sessions_by_expiry ON sessions (expires_at);

-- One per operator: a new link replaces the previous one.
CREATE TABLE sign_in_links (
  operator_id TEXT    PRIMARY KEY,
  hash        BLOB    NOT NULL UNIQUE,
  expires_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX sign_in_links_by_expiry ON sign_in_links (expires_at);

-- id: a UUIDv7, so that key order is time order.
CREATE TABLE audit (
  id          TEXT    PRIMARY KEY,
  at          INTEGER NOT NULL,
  operator_id TEXT,
  operator    TEXT    NOT NULL,
  action      TEXT    NOT NULL,
  company_id  INTEGER,
  account_id  INTEGER,
  target      TEXT,
  request_id  TEXT,
  address     TEXT
) STRICT, WITHOUT ROWID;

CREATE INDEX audit_by_age ON audit (at);

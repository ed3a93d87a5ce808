-- The schema of the journal file. All of it is primary data: what the indexer derives is in a file of its own (index/index.sql).

-- The journal ------------------------------------------------------------------------------------------------------------

CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- The last id given out, so that none is ever used again. AUTOINCREMENT would do the same, but writes its row for every
-- single insert; here it is written once for a batch.
CREATE TABLE sequences (
  name  TEXT    PRIMARY KEY,
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO sequences (name, value) VALUES ('events', 0), ('resends', 0);

-- One row per first arrival ('event') and per re-send with other bytes ('revision').
-- The payload stands last, so that reading the rest skips its pages.
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
  payload         BLOB
) STRICT;

-- Finds a revision by its bytes, and lists those of an event in id order (the rowid is every index's last column).
CREATE UNIQUE INDEX revisions_by_bytes ON events (revises, sha256) WHERE kind = 'revision';
CREATE INDEX revisions_in_order ON events (revises) WHERE kind = 'revision';

-- A re-send whose bytes are kept already.
CREATE TABLE resends (
  id          INTEGER PRIMARY KEY,
  company_id  INTEGER NOT NULL,
  event_id    INTEGER NOT NULL,
  received_at INTEGER NOT NULL,
  key_id      TEXT    NOT NULL,
  request_id  TEXT    NOT NULL
) STRICT;

-- What makes a message one message, for ever: it outlives the event.
CREATE TABLE dedupe (
  company_id INTEGER NOT NULL,
  digest     BLOB    NOT NULL,
  event_id   INTEGER NOT NULL,
  sha256     BLOB    NOT NULL,
  minted_key BLOB    NOT NULL,
  PRIMARY KEY (company_id, digest)
) STRICT, WITHOUT ROWID;

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
  -- Of its own, as it is written: 100/1s, or off. NULL: as the setting has it.
  rate_limit   TEXT,
  generation   INTEGER NOT NULL
) STRICT;

CREATE INDEX tokens_by_generation ON tokens (generation);
CREATE INDEX tokens_by_tenant ON tokens (company_id, account_id, created_at, key_id);
-- A token has one successor.
CREATE UNIQUE INDEX tokens_by_predecessor ON tokens (rotated_from) WHERE rotated_from IS NOT NULL;

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
  route       TEXT    NOT NULL,
  request_id  TEXT    NOT NULL,
  headers     TEXT    NOT NULL,
  body_size   INTEGER NOT NULL,
  body        BLOB    NOT NULL,
  -- The event that it became when an operator accepted it.
  accepted_as INTEGER,
  accepted_at INTEGER,
  accepted_by TEXT
) STRICT;

CREATE INDEX refusals_by_tenant ON refusals (company_id, account_id, id);
CREATE INDEX refusals_by_age ON refusals (received_at);

-- Processing: written by processing alone, never touched by a rebuild of the index ----------------------------------------

-- One consumer's view of a tenant's queue. 0 is `default`, which every tenant has; its row is made when it is first used.
-- frontier: up to which event it has taken notice. deleted_at: its rows are being cleared away.
CREATE TABLE subscriptions (
  company_id INTEGER NOT NULL,
  account_id INTEGER NOT NULL,
  id         INTEGER NOT NULL,
  name       TEXT    NOT NULL,
  created_at INTEGER NOT NULL,
  frontier   INTEGER NOT NULL,
  deleted_at INTEGER,
  PRIMARY KEY (company_id, account_id, id)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX subscriptions_by_name ON subscriptions (company_id, account_id, name) WHERE deleted_at IS NULL;

-- Keys begin with the event or the lane: a planner that knows nothing of the rows yet cannot take the tenant for the
-- narrowest part of them. The queue itself, below, is kept by tenant.

-- What became of an event in a subscription. There is a row once the subscription took notice of the event.
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

-- What is left of a lane: those under a lease, and those waiting in their order.
CREATE INDEX deliveries_by_lane ON deliveries (lane, company_id, account_id, subscription, state, event_id)
  WHERE settled_at IS NULL;
-- Lists by state. Not by `done`, which is nearly everything, for ever: that is found by going down from the frontier.
-- `entries >= 0` is always true, and has to be named by whoever wants this index: a planner that may choose would take it,
-- beginning with the tenant, for looking up an event or a lane.
CREATE INDEX deliveries_by_state ON deliveries (company_id, account_id, subscription, state, event_id)
  WHERE entries >= 0 AND state <> 'done';

-- head: the lowest event that is not final. ready_at: when an ordered claim may have it, null if nothing is left to do.
-- open_at: when an unordered claim may have something, where that is earlier. held: under an ordered lease (1),
-- under others (2), or under none (0).
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

-- The queue: lanes in the order in which they are handed out. Leases that expire come back by themselves: their time passes.
CREATE INDEX lanes_ready ON lanes (company_id, account_id, subscription, ready_at, head) WHERE ready_at IS NOT NULL;
CREATE INDEX lanes_open ON lanes (company_id, account_id, subscription, open_at, head) WHERE open_at IS NOT NULL;

-- Hand-outs that came to nothing, and who brought an event back.
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

-- The console: operators and what they did. Belongs to the installation and to no tenant -----------------------------------

-- tenants: a JSON array of [account, company]; null for all of them. password: an encoded hash; null: signs in by link.
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

-- One for each operator: a new link takes the place of the one before.
CREATE TABLE sign_in_links (
  operator_id TEXT    PRIMARY KEY,
  hash        BLOB    NOT NULL UNIQUE,
  expires_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX sign_in_links_by_expiry ON sign_in_links (expires_at);

-- id: a UUIDv7, so that the order of the key is the order of time.
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

-- The journal and what it needs. Primary data: nothing here can be recovered if it is not kept now.

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
  generation   INTEGER NOT NULL
) STRICT;

CREATE INDEX tokens_by_generation ON tokens (generation);
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
  body        BLOB    NOT NULL
) STRICT;

CREATE INDEX refusals_by_tenant ON refusals (company_id, account_id, id);
CREATE INDEX refusals_by_age ON refusals (received_at);

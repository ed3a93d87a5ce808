-- What the indexer derives from the journal. Everything here can be rebuilt.

-- How far each journal table is followed. clearing = 1: a rebuild is emptying the derived tables.
CREATE TABLE index_cursors (
  lane     TEXT    PRIMARY KEY CHECK (lane IN ('events', 'resends')),
  position INTEGER NOT NULL,
  clearing INTEGER NOT NULL DEFAULT 0 CHECK (clearing IN (0, 1))
) STRICT, WITHOUT ROWID;

INSERT INTO index_cursors (lane, position) VALUES ('events', 0), ('resends', 0);

CREATE TABLE event_index (
  company_id      INTEGER NOT NULL,
  account_id      INTEGER NOT NULL,
  event_id        INTEGER NOT NULL,
  kind            TEXT    NOT NULL,
  conversation_id INTEGER,
  contact_name    TEXT,
  contact_email   TEXT,
  message_type    TEXT,
  snippet         TEXT,
  warnings        TEXT,
  unindexed       TEXT,
  PRIMARY KEY (company_id, account_id, event_id)
) STRICT, WITHOUT ROWID;

-- How often an event was sent again. Only events that were have a row.
CREATE TABLE repeats (
  company_id   INTEGER NOT NULL,
  event_id     INTEGER NOT NULL,
  resends      INTEGER NOT NULL,
  revisions    INTEGER NOT NULL,
  last_seen_at INTEGER NOT NULL,
  PRIMARY KEY (company_id, event_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE conversations (
  company_id          INTEGER NOT NULL,
  account_id          INTEGER NOT NULL,
  channel_ref         TEXT    NOT NULL,
  id                  INTEGER NOT NULL,
  event_count         INTEGER NOT NULL,
  first_received_at   INTEGER NOT NULL,
  last_event_id       INTEGER NOT NULL,
  last_received_at    INTEGER NOT NULL,
  first_contact_name  TEXT,
  first_contact_email TEXT,
  last_contact_name   TEXT,
  last_contact_email  TEXT,
  last_snippet        TEXT,
  PRIMARY KEY (company_id, account_id, channel_ref)
) STRICT, WITHOUT ROWID;

-- Index file: everything the indexer derives from the journal. No migrations: a file made by another version of this
-- text, or from another journal, is emptied and rebuilt.

-- The journal that it was derived from, and the last indexed event: they reveal a journal restored from a backup. purged: up to
-- which erasure no file holds anything of it. followed: up to which row of `purges` the index holds nothing of the deleted event.
CREATE TABLE index_origin (
  only          INTEGER PRIMARY KEY CHECK (only = 1),
  schema        TEXT    NOT NULL,
  database_uuid TEXT    NOT NULL,
  last_id       INTEGER NOT NULL DEFAULT 0,
  last_request  TEXT    NOT NULL DEFAULT '',
  purged        INTEGER NOT NULL DEFAULT 0,
  followed      INTEGER NOT NULL DEFAULT 0
) STRICT;

-- How far each journal table is indexed; 'words': how far the search words of events are, never beyond 'events'.
-- 'erasures': up to which the index holds nothing of erased messages.
-- clearing = 1: a rebuild is emptying the derived tables.
CREATE TABLE index_cursors (
  source   TEXT    PRIMARY KEY CHECK (source IN ('events', 'resends', 'words', 'erasures')),
  position INTEGER NOT NULL,
  clearing INTEGER NOT NULL DEFAULT 0 CHECK (clearing IN (0, 1))
) STRICT, WITHOUT ROWID;

INSERT INTO index_cursors (source, position) VALUES ('events', 0), ('resends', 0), ('words', 0), ('erasures', 0);

-- email_key: the address as compared. key_id and scope are copied from the journal, so that a scan need not read it.
CREATE TABLE event_index (
  company_id      INTEGER NOT NULL,
  account_id      INTEGER NOT NULL,
  event_id        INTEGER NOT NULL,
  kind            TEXT    NOT NULL,
  received_at     INTEGER NOT NULL,
  key_id          TEXT    NOT NULL,
  scope           TEXT    NOT NULL,
  conversation_id INTEGER,
  contact_name    TEXT,
  contact_email   TEXT,
  email_key       TEXT,
  message_type    TEXT,
  snippet         TEXT,
  warnings        TEXT,
  unindexed       TEXT,
  erased          INTEGER NOT NULL CHECK (erased IN (0, 1)),
  PRIMARY KEY (company_id, account_id, event_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX events_by_time ON event_index (company_id, account_id, received_at, event_id);
CREATE INDEX events_by_conversation ON event_index (company_id, account_id, conversation_id, event_id)
  WHERE conversation_id IS NOT NULL;
CREATE INDEX events_by_email ON event_index (company_id, account_id, email_key, event_id) WHERE email_key IS NOT NULL;
CREATE INDEX revisions_by_id ON event_index (company_id, account_id, event_id) WHERE kind = 'revision';

-- Ids of journal rows that the indexer could not read, since their pages are damaged.
CREATE TABLE unreadable (
  first_id INTEGER PRIMARY KEY,
  last_id  INTEGER NOT NULL
) STRICT;

-- Re-send counts. Only events that were sent again have a row.
CREATE TABLE repeats (
  company_id   INTEGER NOT NULL,
  event_id     INTEGER NOT NULL,
  resends      INTEGER NOT NULL,
  revisions    INTEGER NOT NULL,
  last_seen_at INTEGER NOT NULL,
  PRIMARY KEY (company_id, event_id)
) STRICT, WITHOUT ROWID;

-- channel_key: the HMAC of the channel_ref. channel_ref: that key after `erased:`, once all events are erased.
CREATE TABLE conversations (
  company_id          INTEGER NOT NULL,
  account_id          INTEGER NOT NULL,
  channel_key         TEXT    NOT NULL,
  channel_ref         TEXT    NOT NULL,
  id                  INTEGER NOT NULL,
  event_count         INTEGER NOT NULL,
  erased_count        INTEGER NOT NULL,
  first_received_at   INTEGER NOT NULL,
  last_event_id       INTEGER NOT NULL,
  last_received_at    INTEGER NOT NULL,
  first_contact_name  TEXT,
  first_contact_email TEXT,
  last_contact_name   TEXT,
  last_contact_email  TEXT,
  last_snippet        TEXT,
  PRIMARY KEY (company_id, account_id, channel_key)
) STRICT, WITHOUT ROWID;

CREATE INDEX conversations_by_activity ON conversations (company_id, account_id, last_event_id);

-- Search words of each event, cut and folded by src/model/text-search.ts, each with its tenant as prefix: the tokenizer
-- takes them as they are (spans of 1,024 ids). Only which word is in which event is stored.
CREATE VIRTUAL TABLE event_words USING fts5 (
  words, content = '', contentless_delete = 1, detail = none, tokenize = "ascii tokenchars '.'"
);

-- Traffic counts. span 0: a minute, of all senders (key_id ''). span 1: an hour, of one sender.
CREATE TABLE traffic (
  company_id INTEGER NOT NULL,
  account_id INTEGER NOT NULL,
  span       INTEGER NOT NULL CHECK (span IN (0, 1)),
  at         INTEGER NOT NULL,
  key_id     TEXT    NOT NULL,
  events     INTEGER NOT NULL,
  resends    INTEGER NOT NULL,
  revisions  INTEGER NOT NULL,
  PRIMARY KEY (company_id, account_id, span, at, key_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX traffic_by_age ON traffic (span, at);

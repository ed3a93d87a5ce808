-- What the inbox is read by: an index for each filter, and the words of the search. All of it is derived, so the table is
-- made anew and the indexer fills it again.

DROP TABLE event_index;

-- email_key: the address as it is compared. key_id and scope are the journal's, so that a scan need not look there.
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
  PRIMARY KEY (company_id, account_id, event_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX events_by_time ON event_index (company_id, account_id, received_at, event_id);
CREATE INDEX events_by_conversation ON event_index (company_id, account_id, conversation_id, event_id)
  WHERE conversation_id IS NOT NULL;
CREATE INDEX events_by_email ON event_index (company_id, account_id, email_key, event_id) WHERE email_key IS NOT NULL;
CREATE INDEX revisions_by_id ON event_index (company_id, account_id, event_id) WHERE kind = 'revision';

CREATE INDEX conversations_by_activity ON conversations (company_id, account_id, last_event_id);

-- The words of each event, cut and folded by src/model/words.ts, each beginning with its tenant: the tokenizer takes them as
-- they are. Only which word is in which event is kept.
CREATE VIRTUAL TABLE event_words USING fts5 (
  words, content = '', contentless_delete = 1, detail = none, tokenize = "ascii tokenchars '.'"
);

UPDATE index_cursors SET position = 0, clearing = 1
  WHERE (SELECT value FROM sequences WHERE name = 'events') > 0;

-- What the inbox is read by: an index for each filter, and the words of the search. All of it is derived, so the table is
-- made anew and the indexer fills it again.

DROP TABLE intray.event_index;

-- email_key: the address as it is compared. key_id and scope are the journal's, so that a scan need not look there.
CREATE TABLE intray.event_index (
  company_id      bigint NOT NULL,
  account_id      bigint NOT NULL,
  event_id        bigint NOT NULL,
  received_at     bigint NOT NULL,
  conversation_id bigint,
  kind            text   COLLATE "C" NOT NULL,
  key_id          text   COLLATE "C" NOT NULL,
  scope           text   COLLATE "C" NOT NULL,
  contact_name    text,
  contact_email   text,
  email_key       text   COLLATE "C",
  message_type    text   COLLATE "C",
  snippet         text,
  warnings        text,
  unindexed       text,
  PRIMARY KEY (company_id, account_id, event_id)
);

CREATE INDEX events_by_time ON intray.event_index (company_id, account_id, received_at, event_id);
CREATE INDEX events_by_conversation ON intray.event_index (company_id, account_id, conversation_id, event_id)
  WHERE conversation_id IS NOT NULL;
CREATE INDEX events_by_email ON intray.event_index (company_id, account_id, email_key, event_id)
  WHERE email_key IS NOT NULL;
-- By the negative id: what is ordered by that cannot be read from the primary key, passing over a million events.
CREATE INDEX revisions_by_id ON intray.event_index (company_id, account_id, (-event_id)) WHERE kind = 'revision';

CREATE INDEX conversations_by_activity ON intray.conversations (company_id, account_id, last_event_id);

CREATE INDEX revisions_in_order ON intray.events (revises, id) WHERE revises IS NOT NULL;

-- The words of each event, cut and folded by src/model/words.ts, each beginning with its tenant. What waits to be merged
-- into the index is gone through by every search: it is kept short.
CREATE TABLE intray.event_words (
  company_id bigint   NOT NULL,
  account_id bigint   NOT NULL,
  event_id   bigint   NOT NULL,
  words      tsvector NOT NULL,
  PRIMARY KEY (company_id, account_id, event_id)
);

CREATE INDEX event_words_by_word ON intray.event_words USING gin (words) WITH (gin_pending_list_limit = 512);

-- An account belongs to one company as a rule: without this the planner takes a tenant for much smaller than it is.
CREATE STATISTICS intray.event_index_tenants (ndistinct, dependencies) ON company_id, account_id FROM intray.event_index;
CREATE STATISTICS intray.conversations_tenants (ndistinct, dependencies) ON company_id, account_id
  FROM intray.conversations;

UPDATE intray.index_cursors SET position = 0, clearing = true WHERE EXISTS (SELECT FROM intray.events);

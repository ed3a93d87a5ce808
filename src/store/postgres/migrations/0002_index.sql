-- What the indexer derives from the journal. Everything here can be rebuilt, but the watermark, which only grows.

-- position: how far a lane of the journal is followed. watermark: up to where every row of it is committed.
-- clearing: a rebuild is emptying the derived tables.
CREATE TABLE intray.index_cursors (
  lane      text    PRIMARY KEY CHECK (lane IN ('events', 'resends')),
  position  bigint  NOT NULL,
  watermark bigint  NOT NULL,
  clearing  boolean NOT NULL DEFAULT false
);

INSERT INTO intray.index_cursors (lane, position, watermark) VALUES ('events', 0, 0), ('resends', 0, 0);

CREATE TABLE intray.event_index (
  company_id      bigint NOT NULL,
  account_id      bigint NOT NULL,
  event_id        bigint NOT NULL,
  conversation_id bigint,
  kind            text   NOT NULL,
  contact_name    text,
  contact_email   text,
  message_type    text,
  snippet         text,
  warnings        text,
  unindexed       text,
  PRIMARY KEY (company_id, account_id, event_id)
);

-- How often an event was sent again. Only events that were have a row.
CREATE TABLE intray.repeats (
  company_id   bigint NOT NULL,
  event_id     bigint NOT NULL,
  resends      bigint NOT NULL,
  revisions    bigint NOT NULL,
  last_seen_at bigint NOT NULL,
  PRIMARY KEY (company_id, event_id)
);

-- Counted on with every event: room on the page keeps the new version of a row beside the old one.
CREATE TABLE intray.conversations (
  company_id          bigint NOT NULL,
  account_id          bigint NOT NULL,
  id                  bigint NOT NULL,
  event_count         bigint NOT NULL,
  first_received_at   bigint NOT NULL,
  last_event_id       bigint NOT NULL,
  last_received_at    bigint NOT NULL,
  channel_ref         text   COLLATE "C" NOT NULL,
  first_contact_name  text,
  first_contact_email text,
  last_contact_name   text,
  last_contact_email  text,
  last_snippet        text,
  PRIMARY KEY (company_id, account_id, channel_ref)
) WITH (fillfactor = 80);

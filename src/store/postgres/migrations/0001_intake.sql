-- The journal and what it needs. Primary data: nothing here can be recovered if it is not kept now.
--
-- company_id is part of every primary key and unique index of a tenant's data, and nothing refers across companies, so that
-- the tables can be distributed by it. meta, nodes and index_cursors belong to the database and to no tenant.

CREATE TABLE intray.meta (
  key   text  PRIMARY KEY,
  value bytea NOT NULL
);

-- Ids in the order they are asked for: with a cache, a session would give out lower ids after higher ones were committed.
CREATE SEQUENCE intray.event_ids CACHE 1;
CREATE SEQUENCE intray.resend_ids CACHE 1;
CREATE SEQUENCE intray.refusal_ids CACHE 1;
CREATE SEQUENCE intray.token_numbers CACHE 1;

-- One row per first arrival ('event') and per re-send with other bytes ('revision'). The id leads the key: the indexer
-- follows it, and one index serves both. No CHECK here: it would be parsed again for every batch.
CREATE TABLE intray.events (
  id              bigint NOT NULL,
  company_id      bigint NOT NULL,
  account_id      bigint NOT NULL,
  received_at     bigint NOT NULL,
  revises         bigint,
  erased_at       bigint,
  size            integer NOT NULL,
  kind            text   NOT NULL,
  key_id          text   NOT NULL,
  scope           text   NOT NULL,
  route           text   NOT NULL,
  origin          text   NOT NULL,
  content_type    text   NOT NULL,
  request_id      text   NOT NULL,
  source_ref      text,
  channel_ref     text,
  idempotency_key text,
  traceparent     text,
  user_agent      text,
  remote_addr     text,
  sha256          bytea  NOT NULL,
  payload         bytea,
  PRIMARY KEY (id, company_id)
);

-- Finds the revisions of an event, and one of them by its bytes. Only a revision revises.
CREATE UNIQUE INDEX revisions_by_bytes ON intray.events (revises, sha256, company_id) WHERE revises IS NOT NULL;

-- A re-send whose bytes are kept already.
CREATE TABLE intray.resends (
  id          bigint NOT NULL,
  company_id  bigint NOT NULL,
  event_id    bigint NOT NULL,
  received_at bigint NOT NULL,
  key_id      text   NOT NULL,
  request_id  text   NOT NULL,
  PRIMARY KEY (id, company_id)
);

-- What makes a message one message, for ever: it outlives the event.
CREATE TABLE intray.dedupe (
  company_id bigint NOT NULL,
  event_id   bigint NOT NULL,
  digest     bytea  NOT NULL,
  sha256     bytea  NOT NULL,
  minted_key bytea  NOT NULL,
  PRIMARY KEY (company_id, digest)
);

-- Written by few, under one lock, which also keeps a key id unique over all companies.
CREATE TABLE intray.tokens (
  number       bigint  NOT NULL DEFAULT nextval('intray.token_numbers'),
  company_id   bigint  NOT NULL,
  account_id   bigint  NOT NULL,
  expires_at   bigint,
  created_at   bigint  NOT NULL,
  disabled_at  bigint,
  last_used_at bigint,
  generation   bigint  NOT NULL,
  is_active    boolean NOT NULL,
  key_id       text    COLLATE "C" NOT NULL,
  scope        text    NOT NULL,
  label        text    NOT NULL,
  rotated_from text    COLLATE "C",
  hash         bytea   NOT NULL,
  PRIMARY KEY (key_id, company_id)
);

CREATE INDEX tokens_by_generation ON intray.tokens (generation);
-- A token has one successor.
CREATE UNIQUE INDEX tokens_by_predecessor ON intray.tokens (rotated_from, company_id) WHERE rotated_from IS NOT NULL;

-- seen_at by the clock of the database: a node that was killed stops moving it.
CREATE TABLE intray.nodes (
  node_id          text        PRIMARY KEY,
  token_generation bigint      NOT NULL,
  seen_at          timestamptz NOT NULL
);

CREATE TABLE intray.refusals (
  id          bigint NOT NULL DEFAULT nextval('intray.refusal_ids'),
  company_id  bigint NOT NULL,
  account_id  bigint NOT NULL,
  received_at bigint NOT NULL,
  body_size   bigint NOT NULL,
  key_id      text   NOT NULL,
  code        text   NOT NULL,
  route       text   NOT NULL,
  request_id  text   NOT NULL,
  headers     text   NOT NULL,
  body        bytea  NOT NULL,
  PRIMARY KEY (company_id, account_id, id)
);

CREATE INDEX refusals_by_age ON intray.refusals (received_at);

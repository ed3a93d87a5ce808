-- The console: operators and what they did (primary data), and counts of what came in (derived, filled by the indexer).
-- Operators, sessions, links and the log belong to the installation and to no tenant.

-- tenants: a JSON array of [account, company]; null for all of them. password: an encoded hash; null: signs in by link.
CREATE TABLE intray.operators (
  created_at  bigint NOT NULL,
  disabled_at bigint,
  id          text   COLLATE "C" PRIMARY KEY,
  name        text   COLLATE "C" NOT NULL UNIQUE,
  role        text   NOT NULL CHECK (role IN ('viewer', 'admin')),
  tenants     text,
  password    text
);

CREATE TABLE intray.sessions (
  created_at  bigint NOT NULL,
  expires_at  bigint NOT NULL,
  seen_at     bigint NOT NULL,
  operator_id text   COLLATE "C" NOT NULL,
  hash        bytea  PRIMARY KEY
);

CREATE INDEX sessions_by_operator ON intray.sessions (operator_id, created_at);
CREATE INDEX sessions_by_expiry ON intray.sessions (expires_at);

-- One for each operator: a new link takes the place of the one before.
CREATE TABLE intray.sign_in_links (
  expires_at  bigint NOT NULL,
  operator_id text   COLLATE "C" PRIMARY KEY,
  hash        bytea  NOT NULL UNIQUE
);

CREATE INDEX sign_in_links_by_expiry ON intray.sign_in_links (expires_at);

-- id: a UUIDv7, so that the order of the key is the order of time.
CREATE TABLE intray.audit (
  at          bigint NOT NULL,
  company_id  bigint,
  account_id  bigint,
  id          text   COLLATE "C" PRIMARY KEY,
  operator_id text,
  operator    text   NOT NULL,
  action      text   NOT NULL,
  target      text,
  request_id  text,
  address     text
);

CREATE INDEX audit_by_age ON intray.audit (at);

-- What a refusal became when an operator accepted it.
ALTER TABLE intray.refusals
  ADD COLUMN accepted_as bigint,
  ADD COLUMN accepted_at bigint,
  ADD COLUMN accepted_by text;

-- The tenants there are, and the tokens of one.
CREATE INDEX tokens_by_tenant ON intray.tokens (company_id, account_id, created_at, key_id);

-- span 0: a minute, of all senders (key_id ''). span 1: an hour, of one sender.
CREATE TABLE intray.traffic (
  company_id bigint NOT NULL,
  account_id bigint NOT NULL,
  span       bigint NOT NULL,
  at         bigint NOT NULL,
  events     bigint NOT NULL,
  resends    bigint NOT NULL,
  revisions  bigint NOT NULL,
  key_id     text   COLLATE "C" NOT NULL,
  PRIMARY KEY (company_id, account_id, span, at, key_id)
) WITH (fillfactor = 70);

CREATE INDEX traffic_by_age ON intray.traffic (span, at);

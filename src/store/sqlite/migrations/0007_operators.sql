-- The console: operators and what they did. Belongs to the installation and to no tenant.

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

-- What a refusal became when an operator accepted it.
ALTER TABLE refusals ADD COLUMN accepted_as INTEGER;
ALTER TABLE refusals ADD COLUMN accepted_at INTEGER;
ALTER TABLE refusals ADD COLUMN accepted_by TEXT;

-- The tenants there are, and the tokens of one.
CREATE INDEX tokens_by_tenant ON tokens (company_id, account_id, created_at, key_id);

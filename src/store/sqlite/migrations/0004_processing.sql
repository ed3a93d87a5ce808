-- What processors did: primary data that only processing writes. A rebuild of the index never touches it.

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

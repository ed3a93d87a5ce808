-- What processors did: primary data that only processing writes. A rebuild of the index never touches it.
--
-- A lane's row is the lock of everything in the lane: whoever changes a delivery has locked it. Several lanes are locked
-- in the order of their ids; a claim locks those that nobody holds (SKIP LOCKED) and waits for none while it holds one.

-- One consumer's view of a tenant's queue. 0 is `default`, which every tenant has; its row is made when it is first used.
-- frontier: up to which event it has taken notice. deleted_at: its rows are being cleared away.
CREATE TABLE intray.subscriptions (
  company_id bigint NOT NULL,
  account_id bigint NOT NULL,
  id         bigint NOT NULL,
  created_at bigint NOT NULL,
  frontier   bigint NOT NULL,
  deleted_at bigint,
  name       text   COLLATE "C" NOT NULL,
  PRIMARY KEY (company_id, account_id, id)
);

CREATE UNIQUE INDEX subscriptions_by_name ON intray.subscriptions (company_id, account_id, name)
  WHERE deleted_at IS NULL;

-- Keys begin with the event or the lane: a planner that knows nothing of the rows yet cannot take the tenant for the
-- narrowest part of them. The queue itself, below, is kept by tenant.

-- What became of an event in a subscription. There is a row once the subscription took notice of the event.
-- Changed a few times, in the order it was written: room on the page keeps the new version of a row beside the old one.
CREATE TABLE intray.deliveries (
  company_id       bigint NOT NULL,
  account_id       bigint NOT NULL,
  subscription     bigint NOT NULL,
  event_id         bigint NOT NULL,
  lane             bigint NOT NULL,
  attempts         bigint NOT NULL,
  available_at     bigint NOT NULL,
  lease_expires_at bigint,
  settled_at       bigint,
  ordered          bigint NOT NULL,
  entries          bigint NOT NULL,
  state            text   COLLATE "C" NOT NULL CHECK (state IN ('pending', 'leased', 'done', 'dead')),
  lease_id         text,
  key_id           text,
  PRIMARY KEY (event_id, company_id, account_id, subscription)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);

-- What is left of a lane: those under a lease, and those waiting in their order.
CREATE INDEX deliveries_by_lane ON intray.deliveries (lane, company_id, account_id, subscription, state, event_id)
  WHERE state IN ('pending', 'leased');
-- Lists by state. Not by `done`, which is nearly everything, for ever: that is found by going down from the frontier.
-- `entries >= 0` is always true, and has to be named by whoever wants this index: a planner that may choose would take it,
-- beginning with the tenant, for looking up an event or a lane.
CREATE INDEX deliveries_by_state ON intray.deliveries (company_id, account_id, subscription, state, event_id)
  WHERE entries >= 0 AND state <> 'done';

-- head: the lowest event that is not final. ready_at: when an ordered claim may have it, null if nothing is left to do.
-- open_at: when an unordered claim may have something, where that is earlier. held: under an ordered lease (1),
-- under others (2), or under none (0).
CREATE TABLE intray.lanes (
  company_id   bigint NOT NULL,
  account_id   bigint NOT NULL,
  subscription bigint NOT NULL,
  lane         bigint NOT NULL,
  head         bigint,
  ready_at     bigint,
  open_at      bigint,
  held         bigint NOT NULL,
  done_count   bigint NOT NULL,
  dead_count   bigint NOT NULL,
  PRIMARY KEY (lane, company_id, account_id, subscription)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);

-- The queue: lanes in the order in which they are handed out. Leases that expire come back by themselves: their time passes.
CREATE INDEX lanes_ready ON intray.lanes (company_id, account_id, subscription, ready_at, head)
  WHERE ready_at IS NOT NULL;
CREATE INDEX lanes_open ON intray.lanes (company_id, account_id, subscription, open_at, head)
  WHERE open_at IS NOT NULL;

-- Hand-outs that came to nothing, and who brought an event back.
CREATE TABLE intray.delivery_history (
  company_id   bigint NOT NULL,
  account_id   bigint NOT NULL,
  subscription bigint NOT NULL,
  event_id     bigint NOT NULL,
  number       bigint NOT NULL,
  at           bigint NOT NULL,
  attempts     bigint NOT NULL,
  what         text   NOT NULL,
  state        text   NOT NULL,
  key_id       text,
  error        text,
  PRIMARY KEY (event_id, company_id, account_id, subscription, number)
);

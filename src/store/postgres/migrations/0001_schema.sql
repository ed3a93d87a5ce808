-- The schema. The derived tables in the middle can be rebuilt; all others are primary data.
--
-- company_id is part of every primary key and unique index of a tenant's data, and no key refers across companies, so
-- that the tables can be distributed by it. meta, id_gaps, nodes and index_cursors belong to the database, not to a tenant.

-- The journal ------------------------------------------------------------------------------------------------------------

CREATE TABLE intray.meta (
  key   text  PRIMARY KEY,
  value bytea NOT NULL
);

-- CACHE 1, so that ids are assigned in order: with a cache, a session would assign lower ids after higher ones were
-- committed.
CREATE SEQUENCE intray.event_ids CACHE 1;
CREATE SEQUENCE intray.resend_ids CACHE 1;
CREATE SEQUENCE intray.refusal_ids CACHE 1;
CREATE SEQUENCE intray.token_numbers CACHE 1;
CREATE SEQUENCE intray.purge_ids CACHE 1;

-- Ids above after_id and below before_id were given out, if at all, by another state of this database: restores begin above them.
CREATE TABLE intray.id_gaps (
  after_id  bigint NOT NULL PRIMARY KEY,
  before_id bigint NOT NULL,
  begun_at  bigint NOT NULL
);

-- Tenants that were moved here from another database, which gave out their ids below after_id. Ids above from_id and below after_id
-- were not given out here: a move jumps.
CREATE TABLE intray.tenant_gaps (
  company_id bigint NOT NULL,
  account_id bigint NOT NULL,
  from_id    bigint NOT NULL,
  after_id   bigint NOT NULL,
  PRIMARY KEY (company_id, account_id)
);

-- One row per first arrival ('event') and per re-send with other bytes: a 'revision', or an 'event' if the first was
-- purged. The id leads the key: the indexer
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
  -- By which a hook read it; NULL: the sender's own source_ref, in the JSON of the inbox.
  recipe          text   COLLATE "C",
  sha256          bytea  NOT NULL,
  payload         bytea,
  PRIMARY KEY (id, company_id)
);

-- Not compressed: all batches behind a large payload wait meanwhile (under attack a send took 480 ms instead of 19).
ALTER TABLE intray.events ALTER COLUMN payload SET STORAGE EXTERNAL;

-- Finds an event's revisions in order, and one of them by its bytes.
CREATE UNIQUE INDEX revisions_by_bytes ON intray.events (revises, sha256, company_id) WHERE revises IS NOT NULL;
CREATE INDEX revisions_in_order ON intray.events (revises, id) WHERE revises IS NOT NULL;

-- The latest deliveries of a hook. Other events have no row in it.
CREATE INDEX events_by_hook ON intray.events (key_id, id) WHERE recipe IS NOT NULL;

-- A re-send whose bytes are already stored.
CREATE TABLE intray.resends (
  id          bigint NOT NULL,
  company_id  bigint NOT NULL,
  event_id    bigint NOT NULL,
  received_at bigint NOT NULL,
  key_id      text   NOT NULL,
  request_id  text   NOT NULL,
  PRIMARY KEY (id, company_id)
);

CREATE INDEX resends_by_event ON intray.resends (event_id);

-- Dedupe keys. The primary key makes a message unique for ever; a key outlives its event. sha256: an HMAC once the event is
-- erased or purged; empty without a reference.
CREATE TABLE intray.dedupe (
  company_id bigint NOT NULL,
  event_id   bigint NOT NULL,
  digest     bytea  NOT NULL,
  sha256     bytea  NOT NULL,
  minted_key bytea  NOT NULL,
  PRIMARY KEY (company_id, digest)
);

-- The erasure log: one row per erased event or revision. digest: its dedupe key, NULL without a reference. bytes: the HMAC
-- in place of its SHA-256.
CREATE TABLE intray.erasures (
  id         bigint NOT NULL,
  company_id bigint NOT NULL,
  account_id bigint NOT NULL,
  event_id   bigint NOT NULL,
  erased_at  bigint NOT NULL,
  digest     bytea,
  bytes      bytea  NOT NULL,
  PRIMARY KEY (id, company_id)
);

CREATE INDEX erasures_by_tenant ON intray.erasures (company_id, account_id, id);

-- Tenant 0, 0: the default of all others. Days; 0: never; NULL: as the default. unprocessed: whether messages go that some
-- subscription has not processed.
CREATE TABLE intray.retention_rules (
  company_id  bigint NOT NULL,
  account_id  bigint NOT NULL,
  events      bigint,
  refusals    bigint,
  history     bigint,
  unprocessed text CHECK (unprocessed IN ('keep', 'purge')),
  PRIMARY KEY (company_id, account_id)
);

-- Rows that retention deleted and the index may still hold. Deleted once the index has followed.
CREATE TABLE intray.purges (
  id         bigint NOT NULL DEFAULT nextval('intray.purge_ids'),
  company_id bigint NOT NULL,
  account_id bigint NOT NULL,
  event_id   bigint NOT NULL,
  PRIMARY KEY (id, company_id)
);

-- The ids of conversations that lost events: an index that is built afterwards cannot take them from their first events.
CREATE TABLE intray.conversation_ids (
  company_id  bigint NOT NULL,
  account_id  bigint NOT NULL,
  id          bigint NOT NULL,
  channel_key text   COLLATE "C" NOT NULL,
  PRIMARY KEY (company_id, account_id, channel_key)
);

CREATE INDEX conversation_ids_by_id ON intray.conversation_ids (company_id, account_id, id);

-- HMAC-SHA-256 under the dedupe key, in place of the SHA-256 of erased bytes; as in src/model/erasure.ts.
CREATE FUNCTION intray.erased_digest(bytea) RETURNS bytea LANGUAGE sql STABLE AS $$
  SELECT sha256(pad.outside || sha256(pad.inside || convert_to('bytes', 'UTF8') || $1)) FROM (
    SELECT decode(string_agg(lpad(to_hex(octet # 54), 2, '0'), '' ORDER BY n), 'hex') AS inside,
      decode(string_agg(lpad(to_hex(octet # 92), 2, '0'), '' ORDER BY n), 'hex') AS outside
    FROM (SELECT n, CASE WHEN n < octet_length(m.value) THEN get_byte(m.value, n) ELSE 0 END AS octet
      FROM intray.meta m, generate_series(0, 63) n WHERE m.key = 'dedupe_key') octets) pad
$$;

-- Append as one statement: everything a batch needs, in one round trip and one transaction, including conflicts.
--
--   dedupe row   new → event                                      → s (stored)
--            existed → same minted key                            → s (a node's own retry)
--                      bytes of the first                         → resend row → d (duplicate); none if it was purged
--                      bytes of a kept revision                   → resend row → c (conflict)
--                      other bytes                                → revision   → c (conflict); an event if the first was purged
--
-- ids: the id to answer for each item. outcomes: null if all are 's'.

CREATE FUNCTION intray.append_messages(
  minted_keys bytea[], digests bytea[], sha256s bytea[], payloads bytea[],
  -- META_COLUMNS of event-columns.ts, in the same order.
  company_ids bigint[], account_ids bigint[], received_ats bigint[], key_ids text[], scopes text[], routes text[],
  origins text[], content_types text[], request_ids text[], source_refs text[], channel_refs text[],
  idempotency_keys text[], traceparents text[], user_agents text[], remote_addrs text[], recipes text[],
  OUT ids bigint[], OUT outcomes "char"[])
LANGUAGE plpgsql
AS $$
DECLARE
  total   CONSTANT integer := cardinality(digests);
  taken   xid8;
  erased  bytea;
  won     integer;
  item    record;
  first   record;
  same    boolean;
  kept    boolean;
  gone    boolean;
  written boolean;
BEGIN
  -- Whatever the role, the database or a pooler set: an answer means on disk, here and on the synchronous standby, and
  -- a wait that was cut short raises a warning.
  IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  IF current_setting('client_min_messages') = 'error' THEN
    PERFORM set_config('client_min_messages', 'warning', true);
  END IF;

  -- Plans are cached for the life of a session: a plan made while the tables were empty must not scan them when they
  -- are large.
  IF current_setting('enable_seqscan') = 'on' THEN
    PERFORM set_config('enable_seqscan', 'off', true);
  END IF;

  -- The transaction takes its xid before it draws an id: the watermark depends on this (see watermark.ts). Assigned to
  -- an unused variable, since PERFORM would cost a query.
  taken := pg_current_xact_id();

  -- Ids in the order of the items. An unused id leaves a gap, which no reader waits for.
  ids := ARRAY(SELECT nextval('intray.event_ids') FROM unnest(digests));

  -- Keys in digest order: two batches cannot deadlock. Of equal keys in the batch the first wins.
  INSERT INTO intray.dedupe (company_id, digest, event_id, sha256, minted_key)
  SELECT k.company_id, k.digest, k.id, CASE WHEN k.digest = k.minted_key THEN '' ELSE k.sha256 END, k.minted_key
  FROM (SELECT unnest(company_ids) AS company_id, unnest(digests) AS digest, unnest(ids) AS id,
          unnest(sha256s) AS sha256, unnest(minted_keys) AS minted_key) k
  ORDER BY k.company_id, k.digest, k.id
  ON CONFLICT DO NOTHING;
  GET DIAGNOSTICS won = ROW_COUNT;

  IF won < total THEN
    -- The holder of each key is committed by now, or is this batch.
    ids := ARRAY(
      SELECT CASE WHEN d.event_id = k.id THEN k.id END
      FROM unnest(company_ids, digests, ids) WITH ORDINALITY AS k (company_id, digest, id, n)
      LEFT JOIN intray.dedupe d ON d.company_id = k.company_id AND d.digest = k.digest
      ORDER BY k.n);
  END IF;

  IF won > 0 THEN
    INSERT INTO intray.events (id, kind, company_id, account_id, received_at, size, key_id, scope, route, origin,
      content_type, request_id, source_ref, channel_ref, idempotency_key, traceparent, user_agent, remote_addr, recipe,
      sha256, payload)
    SELECT k.id, 'event', k.company_id, k.account_id, k.received_at, octet_length(k.payload), k.key_id, k.scope, k.route,
      k.origin, k.content_type, k.request_id, k.source_ref, k.channel_ref, k.idempotency_key, k.traceparent,
      k.user_agent, k.remote_addr, k.recipe, k.sha256, k.payload
    FROM (SELECT unnest(ids) AS id, unnest(company_ids) AS company_id, unnest(account_ids) AS account_id,
            unnest(received_ats) AS received_at, unnest(key_ids) AS key_id, unnest(scopes) AS scope,
            unnest(routes) AS route, unnest(origins) AS origin, unnest(content_types) AS content_type,
            unnest(request_ids) AS request_id, unnest(source_refs) AS source_ref, unnest(channel_refs) AS channel_ref,
            unnest(idempotency_keys) AS idempotency_key, unnest(traceparents) AS traceparent,
            unnest(user_agents) AS user_agent, unnest(remote_addrs) AS remote_addr, unnest(recipes) AS recipe,
            unnest(sha256s) AS sha256,
            unnest(payloads) AS payload) k
    WHERE k.id IS NOT NULL;
    IF won = total THEN
      RETURN;
    END IF;
  END IF;

  -- The remaining items are repeats: of this batch, of an earlier one, or of another node's a moment ago. Each
  -- statement below sees all commits up to now.
  written := won > 0;
  outcomes := array_fill('s'::"char", ARRAY[total]);
  FOR item IN
    SELECT k.*
    FROM unnest(ids, minted_keys, digests, company_ids, account_ids, received_ats, key_ids, scopes, routes, origins,
                content_types, request_ids, source_refs, channel_refs, idempotency_keys, traceparents, user_agents,
                remote_addrs, recipes, sha256s, payloads) WITH ORDINALITY
      AS k (id, minted_key, digest, company_id, account_id, received_at, key_id, scope, route, origin, content_type,
            request_id, source_ref, channel_ref, idempotency_key, traceparent, user_agent, remote_addr, recipe, sha256,
            payload, n)
    WHERE k.id IS NULL
    ORDER BY k.company_id, k.digest, k.n
  LOOP
    SELECT d.event_id, d.sha256, d.minted_key INTO first
    FROM intray.dedupe d WHERE d.company_id = item.company_id AND d.digest = item.digest;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'a dedupe key came and went' USING ERRCODE = 'serialization_failure';
    END IF;
    ids[item.n] := first.event_id;
    CONTINUE WHEN first.minted_key = item.minted_key;
    same := first.sha256 = item.sha256;
    kept := same;
    gone := false;
    IF NOT same THEN
      -- Two nodes with the same new bytes are serialized, key by key in digest order.
      SELECT d.event_id, d.sha256, d.minted_key INTO first FROM intray.dedupe d
      WHERE d.company_id = item.company_id AND d.digest = item.digest FOR NO KEY UPDATE;
      -- Of an erased or purged message there are HMACs to compare with. The first event cannot be purged before this revision
      -- is committed, which then keeps it.
      PERFORM FROM intray.events e WHERE e.id = first.event_id AND e.company_id = item.company_id FOR KEY SHARE;
      gone := NOT FOUND;
      erased := CASE WHEN gone OR NOT EXISTS (SELECT FROM intray.events e WHERE e.id = first.event_id
        AND e.company_id = item.company_id AND e.erased_at IS NULL) THEN intray.erased_digest(item.sha256) END;
      same := first.sha256 = item.sha256 OR coalesce(first.sha256 = erased, false);
      kept := same OR EXISTS (SELECT FROM intray.events e WHERE e.company_id = item.company_id
        AND e.revises = first.event_id AND e.sha256 IN (item.sha256, erased));
    END IF;
    outcomes[item.n] := CASE WHEN same THEN 'd' ELSE 'c' END;
    -- A purged message has no row that this re-send could be counted for.
    CONTINUE WHEN same AND gone;
    written := true;
    IF kept THEN
      INSERT INTO intray.resends (id, company_id, event_id, received_at, key_id, request_id)
      VALUES (nextval('intray.resend_ids'), item.company_id, first.event_id, item.received_at, item.key_id,
        item.request_id);
    ELSE
      INSERT INTO intray.events (id, kind, revises, company_id, account_id, received_at, size, key_id, scope, route,
        origin, content_type, request_id, source_ref, channel_ref, idempotency_key, traceparent, user_agent,
        remote_addr, recipe, sha256, payload)
      VALUES (nextval('intray.event_ids'), CASE WHEN gone THEN 'event' ELSE 'revision' END, first.event_id, item.company_id, item.account_id,
        item.received_at, octet_length(item.payload), item.key_id, item.scope, item.route, item.origin,
        item.content_type, item.request_id, item.source_ref, item.channel_ref, item.idempotency_key, item.traceparent,
        item.user_agent, item.remote_addr, item.recipe, item.sha256, item.payload);
    END IF;
  END LOOP;

  -- A retry that finds everything stored writes nothing, and an empty commit waits for no standby: the first try may
  -- have been cut off during that wait. So one row is written; its commit makes all earlier ones durable.
  IF NOT written THEN
    UPDATE intray.meta SET value = value WHERE key = 'fence';
  END IF;
END
$$;

-- Derived by the indexer: can be rebuilt, except the watermark, which only grows --------------------------------------

-- position: how far a journal table is indexed; of 'words': how far the search words of events are, never beyond 'events'.
-- Of 'erasures': up to which the index holds nothing of erased messages. watermark: every row up to this id is committed. clearing: a rebuild is emptying the derived tables.
CREATE TABLE intray.index_cursors (
  source    text    PRIMARY KEY CHECK (source IN ('events', 'resends', 'words', 'erasures')),
  position  bigint  NOT NULL,
  watermark bigint  NOT NULL,
  clearing  boolean NOT NULL DEFAULT false
);

INSERT INTO intray.index_cursors (source, position, watermark) VALUES ('events', 0, 0), ('resends', 0, 0), ('words', 0, 0), ('erasures', 0, 0);

-- email_key: the address as compared. key_id and scope are copied from the journal, so that a scan need not read it.
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
  erased          bigint NOT NULL,
  PRIMARY KEY (company_id, account_id, event_id)
);

CREATE INDEX events_by_time ON intray.event_index (company_id, account_id, received_at, event_id);
CREATE INDEX events_by_conversation ON intray.event_index (company_id, account_id, conversation_id, event_id)
  WHERE conversation_id IS NOT NULL;
CREATE INDEX events_by_email ON intray.event_index (company_id, account_id, email_key, event_id)
  WHERE email_key IS NOT NULL;
-- By the negative id: this order cannot be read from the primary key, which would pass a million events.
CREATE INDEX revisions_by_id ON intray.event_index (company_id, account_id, (-event_id)) WHERE kind = 'revision';

-- Ids of journal rows that the indexer could not read, since their pages are damaged.
CREATE TABLE intray.unreadable (
  first_id bigint PRIMARY KEY,
  last_id  bigint NOT NULL
);

-- Re-send counts. Only events that were sent again have a row.
CREATE TABLE intray.repeats (
  company_id   bigint NOT NULL,
  event_id     bigint NOT NULL,
  resends      bigint NOT NULL,
  revisions    bigint NOT NULL,
  last_seen_at bigint NOT NULL,
  PRIMARY KEY (company_id, event_id)
);

-- Updated with every event: free space on the page keeps the new version of a row beside the old one.
-- channel_key: the HMAC of the channel_ref. channel_ref: that key after `erased:`, once all events are erased.
CREATE TABLE intray.conversations (
  company_id          bigint NOT NULL,
  account_id          bigint NOT NULL,
  id                  bigint NOT NULL,
  event_count         bigint NOT NULL,
  erased_count        bigint NOT NULL,
  first_received_at   bigint NOT NULL,
  last_event_id       bigint NOT NULL,
  last_received_at    bigint NOT NULL,
  channel_key         text   COLLATE "C" NOT NULL,
  channel_ref         text   COLLATE "C" NOT NULL,
  first_contact_name  text,
  first_contact_email text,
  last_contact_name   text,
  last_contact_email  text,
  last_snippet        text,
  PRIMARY KEY (company_id, account_id, channel_key)
) WITH (fillfactor = 80);

CREATE INDEX conversations_by_activity ON intray.conversations (company_id, account_id, last_event_id);

-- Search words of each event, cut and folded by src/model/text-search.ts, each with its tenant as prefix. Every search
-- scans the pending list of the index, so it is kept short.
CREATE TABLE intray.event_words (
  company_id bigint   NOT NULL,
  account_id bigint   NOT NULL,
  event_id   bigint   NOT NULL,
  words      tsvector NOT NULL,
  PRIMARY KEY (company_id, account_id, event_id)
);

CREATE INDEX event_words_by_word ON intray.event_words USING gin (words) WITH (gin_pending_list_limit = 512);

-- An account usually belongs to one company: without these statistics the planner underestimates the rows of a tenant.
CREATE STATISTICS intray.event_index_tenants (ndistinct, dependencies) ON company_id, account_id FROM intray.event_index;
CREATE STATISTICS intray.conversations_tenants (ndistinct, dependencies) ON company_id, account_id
  FROM intray.conversations;

-- Traffic counts. span 0: a minute, of all senders (key_id ''). span 1: an hour, of one sender.
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

-- Processing: written by processing alone, never touched by a rebuild of the index ----------------------------------------
--
-- A lane's row is the lock of the whole lane: a transaction locks it before it changes a delivery. Several lanes are
-- locked in id order; a claim locks free lanes (SKIP LOCKED) and waits for none while it holds one.

-- One consumer's view of a tenant's queue. Id 0 is `default`, which every tenant has; its row is inserted at first use.
-- enqueued_up_to: index entries up to this id are enqueued. deleted_at: its rows are being deleted. max_attempts and the
-- delays after failures: null where it has the default.
CREATE TABLE intray.subscriptions (
  company_id     bigint NOT NULL,
  account_id     bigint NOT NULL,
  id             bigint NOT NULL,
  created_at     bigint NOT NULL,
  enqueued_up_to bigint NOT NULL,
  deleted_at     bigint,
  max_attempts   bigint,
  first_delay_ms bigint,
  max_delay_ms   bigint,
  name           text   COLLATE "C" NOT NULL,
  PRIMARY KEY (company_id, account_id, id)
);

CREATE UNIQUE INDEX subscriptions_by_name ON intray.subscriptions (company_id, account_id, name)
  WHERE deleted_at IS NULL;

-- Keys begin with the event or the lane: a planner without statistics would take the tenant for their most selective
-- part. The queue indexes below begin with the tenant.

-- The state of an event in a subscription. The row exists once the event is enqueued.
-- Changed a few times, in insert order: free space on the page keeps the new version of a row beside the old one.
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

-- A lane's unsettled deliveries: the leased ones, and the pending ones in order.
CREATE INDEX deliveries_by_lane ON intray.deliveries (lane, company_id, account_id, subscription, state, event_id)
  WHERE state IN ('pending', 'leased');
-- When the first pending delivery of a lane becomes available, however many wait. Only queries that name `entries >= 0`,
-- which is always true, can use it: others look for the lowest event.
CREATE INDEX deliveries_by_time ON intray.deliveries (lane, company_id, account_id, subscription, available_at)
  WHERE entries >= 0 AND state = 'pending';
-- Lists by state. Without `done`, which nearly all events reach: those are found by scanning down from enqueued_up_to.
-- `entries >= 0` is always true; only queries that name it can use this index. Otherwise the planner would choose it,
-- since it begins with the tenant, to look up an event or a lane.
CREATE INDEX deliveries_by_state ON intray.deliveries (company_id, account_id, subscription, state, event_id)
  WHERE entries >= 0 AND state <> 'done';

-- head: the lowest event that is not final. ready_at: when an ordered claim may take it; null if the lane is idle.
-- open_at: when an unordered claim may take an event, if earlier. held: under an ordered lease (1), under unordered
-- ones (2), under none (0).
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

-- The queue: lanes in hand-out order. An expired lease needs no update: its ready_at has passed.
CREATE INDEX lanes_ready ON intray.lanes (company_id, account_id, subscription, ready_at, head)
  WHERE ready_at IS NOT NULL;
CREATE INDEX lanes_open ON intray.lanes (company_id, account_id, subscription, open_at, head)
  WHERE open_at IS NOT NULL;

-- Failed hand-outs and requeues.
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

-- Only for retention, which names `number >= 0`, which is always true.
CREATE INDEX delivery_history_by_age ON intray.delivery_history (company_id, account_id, at) WHERE number >= 0;

-- Push: the URLs that subscriptions are delivered to. sealed: URL, headers and signing secrets; empty once removed. disabled_reason:
-- the service disabled it. opened_at, retry_at, trips: its circuit. is_moved: its tenant is moved to another database. A removed
-- row stays, so that every node learns of it.
CREATE TABLE intray.endpoints (
  company_id      bigint NOT NULL,
  account_id      bigint NOT NULL,
  subscription    bigint NOT NULL,
  is_active       bigint NOT NULL CHECK (is_active IN (0, 1)),
  timeout_ms      bigint NOT NULL,
  concurrency     bigint NOT NULL,
  created_at      bigint NOT NULL,
  changed_at      bigint NOT NULL,
  removed_at      bigint,
  is_moved        bigint NOT NULL CHECK (is_moved IN (0, 1)),
  opened_at       bigint,
  retry_at        bigint,
  trips           bigint NOT NULL,
  revision        bigint NOT NULL,
  generation      bigint NOT NULL,
  id              text   NOT NULL,
  body            text   NOT NULL CHECK (body IN ('event', 'raw')),
  disabled_reason text,
  sealed          bytea  NOT NULL,
  PRIMARY KEY (company_id, account_id, subscription)
);

CREATE INDEX endpoints_by_generation ON intray.endpoints (generation);

-- The latest requests to an endpoint, as a JSON list. Only to be looked at: not copied, and without anything of the event.
CREATE TABLE intray.endpoint_attempts (
  company_id   bigint NOT NULL,
  account_id   bigint NOT NULL,
  subscription bigint NOT NULL,
  attempts     text   NOT NULL,
  PRIMARY KEY (company_id, account_id, subscription)
);

-- Tokens, nodes, refusals ------------------------------------------------------------------------------------------------

-- Few writers, under one lock, which also keeps a key id unique over all companies.
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
  -- Its tenant was moved to another database: the address in the answer to its senders, or ''.
  moved_to     text,
  -- The token's own limit as text: 100/1s, or off. NULL: the setting applies.
  rate_limit   text,
  -- Of a hook, such as telegram/1. NULL: a bearer token.
  recipe       text,
  hash         bytea   NOT NULL,
  PRIMARY KEY (key_id, company_id)
);

CREATE INDEX tokens_by_generation ON intray.tokens (generation);
CREATE INDEX tokens_by_tenant ON intray.tokens (company_id, account_id, created_at, key_id);
-- A token has one successor.
CREATE UNIQUE INDEX tokens_by_predecessor ON intray.tokens (rotated_from, company_id) WHERE rotated_from IS NOT NULL;

-- What a hook has beside its token. sealed: its address and the secrets of its signatures, encrypted (runtime/secret-box.ts).
-- max_body: NULL: the setting applies.
-- first_key_id: the key id that the hook had before any rotation of its address.
CREATE TABLE intray.hooks (
  company_id   bigint NOT NULL,
  account_id   bigint NOT NULL,
  max_body     bigint,
  key_id       text   COLLATE "C" NOT NULL,
  first_key_id text   COLLATE "C" NOT NULL,
  sealed       bytea  NOT NULL,
  PRIMARY KEY (key_id, company_id)
);

-- Custom recipes, which events name by digest: kept for ever, so that the index can be built again.
CREATE TABLE intray.recipes (
  company_id bigint NOT NULL,
  account_id bigint NOT NULL,
  created_at bigint NOT NULL,
  digest     text   COLLATE "C" NOT NULL,
  recipe     text   NOT NULL,
  PRIMARY KEY (company_id, account_id, digest)
);

-- seen_at is the database's time: a killed node stops updating it.
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
  -- The sentence of its answer, if it says more than the code.
  reason      text,
  route       text   NOT NULL,
  request_id  text   NOT NULL,
  headers     text   NOT NULL,
  body        bytea  NOT NULL,
  -- The event created when an operator accepted it.
  accepted_as bigint,
  accepted_at bigint,
  accepted_by text,
  PRIMARY KEY (company_id, account_id, id)
);

CREATE INDEX refusals_by_key ON intray.refusals (company_id, account_id, key_id, id);
CREATE INDEX refusals_by_age ON intray.refusals (company_id, account_id, received_at);

-- The console: operators and what they did. Belongs to the installation and to no tenant -----------------------------------

-- tenants: a JSON array of [account, company]; null: all. password: an encoded hash; null: signs in by link.
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

-- One per operator: a new link replaces the previous one.
CREATE TABLE intray.sign_in_links (
  expires_at  bigint NOT NULL,
  operator_id text   COLLATE "C" PRIMARY KEY,
  hash        bytea  NOT NULL UNIQUE
);

CREATE INDEX sign_in_links_by_expiry ON intray.sign_in_links (expires_at);

-- id: a UUIDv7, so that key order is time order.
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

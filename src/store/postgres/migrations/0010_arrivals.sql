-- What has arrived in a burst lies together until it is filed (docs/adr/0037): a row holds several messages of one company, with
-- ids that follow each other, 256 at most. Senders wait for this and for the keys; the rows of `events` come later, with the index.
--
--   metas   a JSON list with a list for each message: account_id, received_at, key_id, scope, route, origin, content_type,
--           request_id, source_ref, channel_ref, idempotency_key, traceparent, user_agent, remote_addr
--
-- A row fills a page of 8 KiB. Only what is larger than that by itself is put aside (TOAST), and nothing is compressed: it does
-- not stay.
CREATE TABLE intray.arrivals (
  first_id   bigint  NOT NULL,
  last_id    bigint  NOT NULL,
  company_id bigint  NOT NULL,
  metas      text    NOT NULL,
  sha256s    bytea[] NOT NULL,
  payloads   bytea[] NOT NULL,
  PRIMARY KEY (first_id, company_id)
) WITH (toast_tuple_target = 8160);

ALTER TABLE intray.arrivals
  ALTER COLUMN metas SET STORAGE EXTERNAL,
  ALTER COLUMN sha256s SET STORAGE EXTERNAL,
  ALTER COLUMN payloads SET STORAGE EXTERNAL;

-- The messages of a row, as they will be in `events`, column by column: whoever adds one there makes this anew. Where the row does not
-- hold what it says, something is NULL that must not be.
CREATE FUNCTION intray.unpack(a intray.arrivals) RETURNS SETOF intray.events
LANGUAGE sql STABLE
AS $$
  SELECT k.id, a.company_id, (k.meta ->> 0)::bigint, (k.meta ->> 1)::bigint, NULL::bigint, NULL::bigint,
    octet_length(k.payload), 'event', k.meta ->> 2, k.meta ->> 3, k.meta ->> 4, k.meta ->> 5, k.meta ->> 6, k.meta ->> 7,
    k.meta ->> 8, k.meta ->> 9, k.meta ->> 10, k.meta ->> 11, k.meta ->> 12, k.meta ->> 13, k.sha256, k.payload
  FROM ROWS FROM (generate_series(a.first_id, a.last_id), jsonb_array_elements(a.metas::jsonb), unnest(a.sha256s),
    unnest(a.payloads)) AS k (id, meta, sha256, payload)
$$;

-- Moves what comes next to its place, in id order: about `most` messages behind `after`, or less if they have their rows already, and
-- no more than 256 rows of arrivals, which are 2 MiB as a rule. Whoever calls it has the turn of the index. Answers up to
-- which id nothing is to come any more, `through` at most.
CREATE FUNCTION intray.file_arrivals(after bigint, through bigint, most bigint, OUT reached bigint)
LANGUAGE plpgsql
SET enable_seqscan = off
AS $$
DECLARE
  last bigint;
BEGIN
  SELECT max(page.first_id) INTO last FROM (
    SELECT a.first_id, sum(a.messages) OVER (ORDER BY a.first_id) - a.messages AS before FROM (
      SELECT r.first_id, r.last_id - r.first_id + 1 AS messages FROM intray.arrivals r
      WHERE r.first_id > after AND r.first_id <= least(through, after + most) ORDER BY r.first_id LIMIT 256) a) page
  WHERE page.before < most;
  IF last IS NOT NULL THEN
    -- In one statement, so in one snapshot: what is committed at this moment is left where it is, or taken and put down.
    BEGIN
      WITH taken AS (DELETE FROM intray.arrivals a WHERE a.first_id > after AND a.first_id <= last RETURNING a)
      INSERT INTO intray.events SELECT e.* FROM taken, LATERAL intray.unpack(taken.a) e;
    EXCEPTION WHEN data_exception OR not_null_violation THEN
      RAISE EXCEPTION 'what arrived behind % and up to % is damaged', after, last USING ERRCODE = 'data_exception';
    END;
  END IF;
  SELECT r.first_id - 1 INTO reached FROM intray.arrivals r
  WHERE r.first_id > coalesce(last, after) ORDER BY r.first_id LIMIT 1;
  reached := least(through, coalesce(reached, through));
END
$$;

-- The index passes over nothing that is not filed. A node of an older version, which knows of no arrivals, would: its step fails, and
-- one of a newer node goes on.
CREATE FUNCTION intray.refuse_to_pass_over() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  IF EXISTS (SELECT FROM intray.arrivals a WHERE a.first_id > OLD.position AND a.first_id <= NEW.position) THEN
    RAISE EXCEPTION 'messages up to % are not filed yet', NEW.position USING ERRCODE = 'serialization_failure';
  END IF;
  RETURN NEW;
END
$$;

CREATE TRIGGER passes_over_nothing BEFORE UPDATE OF position ON intray.index_cursors
  FOR EACH ROW WHEN (NEW.lane = 'events' AND NEW.position > OLD.position) EXECUTE FUNCTION intray.refuse_to_pass_over();

-- A batch that is likely to be new. Its keys are inserted as in append_messages; what they stand for lies down in rows, each from
-- a place of the batch to another. Where a key is known, or another batch drew ids at the same moment, append_messages does
-- all of it.
CREATE FUNCTION intray.append_arrivals(
  minted_keys bytea[], digests bytea[], company_ids bigint[], sha256s bytea[], payloads bytea[],
  froms bigint[], tos bigint[], metas text[],
  OUT ids bigint[], OUT outcomes "char"[])
LANGUAGE plpgsql
AS $$
DECLARE
  total       CONSTANT integer := cardinality(digests);
  taken       xid8;
  consecutive boolean;
  cols        record;
BEGIN
  -- As in append_messages.
  IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  IF current_setting('client_min_messages') = 'error' THEN
    PERFORM set_config('client_min_messages', 'warning', true);
  END IF;

  -- The xid before the ids: see watermark.ts.
  taken := pg_current_xact_id();
  ids := ARRAY(SELECT nextval('intray.event_ids') FROM unnest(digests));

  -- Keys in the order of their digests: two batches cannot wait for each other.
  consecutive := ids[total] - ids[1] = total - 1;
  IF consecutive THEN
    BEGIN
      INSERT INTO intray.dedupe (company_id, digest, event_id, sha256, minted_key)
      SELECT k.company_id, k.digest, k.id, k.sha256, k.minted_key
      FROM (SELECT unnest(company_ids) AS company_id, unnest(digests) AS digest, unnest(ids) AS id,
              unnest(sha256s) AS sha256, unnest(minted_keys) AS minted_key) k
      ORDER BY k.company_id, k.digest, k.id;
      INSERT INTO intray.arrivals (first_id, last_id, company_id, metas, sha256s, payloads)
      SELECT ids[k.a], ids[k.b], company_ids[k.a], k.metas, sha256s[k.a:k.b], payloads[k.a:k.b]
      FROM (SELECT unnest(froms) AS a, unnest(tos) AS b, unnest(metas) AS metas) k;
      RETURN;
    EXCEPTION WHEN unique_violation THEN
      NULL;
    END;
  END IF;

  SELECT array_agg((m ->> 0)::bigint) AS account_ids, array_agg((m ->> 1)::bigint) AS received_ats,
    array_agg(m ->> 2) AS key_ids, array_agg(m ->> 3) AS scopes, array_agg(m ->> 4) AS routes, array_agg(m ->> 5) AS origins,
    array_agg(m ->> 6) AS content_types, array_agg(m ->> 7) AS request_ids, array_agg(m ->> 8) AS source_refs,
    array_agg(m ->> 9) AS channel_refs, array_agg(m ->> 10) AS idempotency_keys, array_agg(m ->> 11) AS traceparents,
    array_agg(m ->> 12) AS user_agents, array_agg(m ->> 13) AS remote_addrs
  INTO cols
  FROM (SELECT e.m FROM unnest(metas) WITH ORDINALITY AS r (t, n),
          LATERAL jsonb_array_elements(r.t::jsonb) WITH ORDINALITY AS e (m, n) ORDER BY r.n, e.n) one;
  SELECT a.ids, a.outcomes INTO ids, outcomes FROM intray.append_messages(minted_keys, digests, company_ids,
    cols.account_ids, cols.received_ats, cols.key_ids, cols.scopes, cols.routes, cols.origins,
    cols.content_types, cols.request_ids, cols.source_refs, cols.channel_refs, cols.idempotency_keys,
    cols.traceparents, cols.user_agents, cols.remote_addrs, sha256s, payloads, NOT consecutive) a;
END
$$;

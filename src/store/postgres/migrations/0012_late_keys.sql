-- Keys that come later (docs/adr/0038). A node that writes alone knows the keys of its newest messages itself: it may put them into
-- `dedupe` when the messages are filed. It is then said to hold the pen.
--
--   who holds the pen     appends to `arrivals` with the keys in the row (append_late), and knows them until they are put
--   anybody else          has all of them put before it adds a key of its own, and takes the pen away (heed_pen)
--
-- So at every moment a key is in `dedupe`, or in a row of arrivals of the one node that knows it.
--
-- Two locks, held to the end of a transaction and always taken in this order, behind that of the table `dedupe`:
--
--   (1229870162, 13)  shared by all who add keys; alone: who takes the pen. Nobody who took no notice of it is under way by then.
--   (1229870162, 14)  shared by appends under the pen and by those who file; alone: who takes the pen away.

-- In the order in which an append takes them, so that nodes of the version before may go on meanwhile.
LOCK TABLE intray.dedupe IN SHARE ROW EXCLUSIVE MODE;

-- The keys of the row's messages, in their order. NULL: they are in `dedupe`.
ALTER TABLE intray.arrivals ADD digests bytea[], ADD minted_keys bytea[];
ALTER TABLE intray.arrivals
  ALTER COLUMN digests SET STORAGE EXTERNAL,
  ALTER COLUMN minted_keys SET STORAGE EXTERNAL;

-- One row, found by its key: a scan of a table is what our sessions avoid. What arrived up to `put_through` has its keys in `dedupe`,
-- whatever its row holds.
CREATE TABLE intray.pen (
  only_one    boolean PRIMARY KEY DEFAULT true CHECK (only_one),
  holder      text,
  put_through bigint NOT NULL DEFAULT 0
);
INSERT INTO intray.pen DEFAULT VALUES;

-- As a holder is called: by the name it gave itself, and the server it was given the pen by. One that took over from it may be at an earlier
-- moment, and have late keys that the node has forgotten.
CREATE FUNCTION intray.holder_of(name text) RETURNS text
LANGUAGE sql STABLE
AS $$
  SELECT name || ' ' || extract(epoch FROM pg_postmaster_start_time())
$$;

CREATE FUNCTION intray.late_keys(a intray.arrivals) RETURNS SETOF intray.dedupe
LANGUAGE sql STABLE
AS $$
  SELECT a.company_id, k.id, k.digest, k.sha256, k.minted_key
  FROM ROWS FROM (generate_series(a.first_id, a.last_id), unnest(a.digests), unnest(a.sha256s), unnest(a.minted_keys))
    AS k (id, digest, sha256, minted_key)
  WHERE a.digests IS NOT NULL AND a.first_id > (SELECT put_through FROM intray.pen WHERE only_one)
$$;

-- Puts all keys that are late, and nobody holds the pen any more. Waits for appends under it. Whoever calls it adds keys next and must
-- not fail for a row that is damaged: what is missing there is passed over, and the filing stops at it.
CREATE FUNCTION intray.end_pen() RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(1229870162, 14);
  PERFORM set_config('intray.pen', '*', true);
  -- What the index is past was filed, with its keys: those rows need not be looked at.
  INSERT INTO intray.dedupe
  SELECT k.* FROM intray.arrivals a, LATERAL intray.late_keys(a) k
  WHERE a.first_id > coalesce((SELECT c.position FROM intray.index_cursors c WHERE c.lane = 'events'), 0)
    AND num_nulls(k.company_id, k.event_id, k.digest, k.sha256, k.minted_key) = 0
  ORDER BY k.company_id, k.digest
  ON CONFLICT DO NOTHING;
  PERFORM set_config('intray.pen', '', true);
  UPDATE intray.pen
  SET holder = NULL, put_through = (SELECT CASE WHEN e.is_called THEN e.last_value ELSE 0 END FROM intray.event_ids e)
  WHERE only_one;
END
$$;

-- Whoever adds keys says by the setting `intray.pen` which pen it holds; a `*` says that it puts keys that were late. Nodes of an older
-- version say nothing.
CREATE FUNCTION intray.heed_pen() RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
  own CONSTANT text := coalesce(current_setting('intray.pen', true), '');
BEGIN
  IF own = '*' THEN
    RETURN NULL;
  END IF;
  -- A snapshot from before the lock would not show who took the pen meanwhile. (Asked in this way neither is a query of its own.)
  IF pg_advisory_xact_lock_shared(1229870162, 13) IS NULL OR current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'messages are stored at the isolation level read committed only' USING ERRCODE = 'serialization_failure';
  END IF;
  IF EXISTS (SELECT FROM intray.pen WHERE only_one AND holder <> intray.holder_of(own)) THEN
    PERFORM intray.end_pen();
  END IF;
  RETURN NULL;
END
$$;

CREATE TRIGGER heeds_pen BEFORE INSERT ON intray.dedupe FOR EACH STATEMENT EXECUTE FUNCTION intray.heed_pen();

-- Takes the pen for a node that is alone, and says so. Does not wait for anybody who adds keys: it is asked again later.
CREATE FUNCTION intray.take_pen(name text) RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
  -- As long as a node counts as alive: nodes.ts.
  IF current_setting('transaction_isolation') <> 'read committed'
    OR (SELECT count(*) FROM intray.nodes WHERE seen_at > clock_timestamp() - interval '4 seconds') > 1 THEN
    RETURN false;
  END IF;
  -- No key, but the trigger sees to those that are late for somebody else, and where the database is frozen it fails like any other.
  INSERT INTO intray.dedupe SELECT d.* FROM intray.dedupe d WHERE false;
  IF NOT pg_try_advisory_xact_lock(1229870162, 13) THEN
    RETURN false;
  END IF;
  -- Nothing is late now. Ids may have been set back since, by whoever made another database of this one.
  UPDATE intray.pen
  SET holder = intray.holder_of(name),
    put_through = least(put_through, (SELECT CASE WHEN e.is_called THEN e.last_value ELSE 0 END FROM intray.event_ids e))
  WHERE only_one;
  RETURN true;
END
$$;

-- As before, and with the messages their keys, where these come late.
CREATE OR REPLACE FUNCTION intray.file_arrivals(after bigint, through bigint, most bigint, OUT reached bigint)
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
    LOCK TABLE intray.dedupe IN ROW EXCLUSIVE MODE;
    PERFORM pg_advisory_xact_lock_shared(1229870162, 14);
    PERFORM set_config('intray.pen', '*', true);
    -- In one statement, so in one snapshot: what is committed at this moment is left where it is, or taken and put down.
    BEGIN
      WITH taken AS (DELETE FROM intray.arrivals a WHERE a.first_id > after AND a.first_id <= last RETURNING a),
      put AS (INSERT INTO intray.dedupe SELECT k.* FROM taken, LATERAL intray.late_keys(taken.a) k
        ORDER BY k.company_id, k.digest)
      INSERT INTO intray.events SELECT e.* FROM taken, LATERAL intray.unpack(taken.a) e;
    EXCEPTION
      WHEN data_exception OR not_null_violation THEN
        RAISE EXCEPTION 'what arrived behind % and up to % is damaged', after, last USING ERRCODE = 'data_exception';
      WHEN unique_violation THEN
        RAISE EXCEPTION 'a message among what arrived behind % and up to % is stored already: %', after, last, SQLERRM
          USING ERRCODE = 'data_exception';
    END;
    PERFORM set_config('intray.pen', '', true);
  END IF;
  SELECT r.first_id - 1 INTO reached FROM intray.arrivals r
  WHERE r.first_id > coalesce(last, after) ORDER BY r.first_id LIMIT 1;
  reached := least(through, coalesce(reached, through));
END
$$;

-- A batch that is likely to be new, of a node that says which pen it holds ('': none), whether the keys may come late, and at which places of the
-- batch it does not know that the key is not in `dedupe`. Where they do come late, it answers with the first of its ids, and up to which
-- id all keys are put; otherwise as append_arrivals does, which it leaves it to. No `put_through`: the node does not hold the pen.
CREATE FUNCTION intray.append_late(
  name text, is_late boolean, doubts bigint[],
  minted_keys bytea[], digests bytea[], company_ids bigint[], sha256s bytea[], payloads bytea[],
  froms bigint[], tos bigint[], metas text[],
  OUT ids bigint[], OUT outcomes "char"[], OUT first_id bigint, OUT put_through bigint)
LANGUAGE plpgsql
AS $$
DECLARE
  total       CONSTANT integer := cardinality(digests);
  taken       xid8;
  is_held     boolean;
BEGIN
  -- As in append_messages.
  IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  IF current_setting('client_min_messages') = 'error' THEN
    PERFORM set_config('client_min_messages', 'warning', true);
  END IF;
  IF current_setting('enable_seqscan') = 'on' THEN
    PERFORM set_config('enable_seqscan', 'off', true);
  END IF;

  -- Nobody else adds keys as long as the pen is held, and no other batch of the node under way has one of these: what is looked for before
  -- the lock holds behind it. The limit keeps it a walk down the tree for each: joined, a large `dedupe` would be read from end to end.
  IF is_late AND name <> '' AND (cardinality(doubts) = 0 OR NOT EXISTS (
      SELECT FROM unnest(doubts) AS n, LATERAL (
        SELECT FROM intray.dedupe d WHERE d.company_id = company_ids[n] AND d.digest = digests[n] LIMIT 1) known)) THEN
    -- As in heed_pen.
    IF pg_advisory_xact_lock_shared(1229870162, 14) IS NULL OR current_setting('transaction_isolation') <> 'read committed' THEN
      RAISE EXCEPTION 'keys come late at the isolation level read committed only' USING ERRCODE = 'serialization_failure';
    END IF;
    SELECT p.holder = intray.holder_of(name), c.position INTO is_held, put_through
    FROM intray.pen p, intray.index_cursors c WHERE p.only_one AND c.lane = 'events';
    IF is_held IS NOT TRUE THEN
      RAISE EXCEPTION 'the pen was taken away' USING ERRCODE = 'serialization_failure';
    END IF;

    -- The xid before the ids: see watermark.ts.
    taken := pg_current_xact_id();
    ids := ARRAY(SELECT nextval('intray.event_ids') FROM unnest(digests));
    IF ids[total] - ids[1] <> total - 1 THEN
      RAISE EXCEPTION 'another node draws ids' USING ERRCODE = 'serialization_failure';
    END IF;
    INSERT INTO intray.arrivals (first_id, last_id, company_id, metas, sha256s, payloads, digests, minted_keys)
    SELECT ids[k.a], ids[k.b], company_ids[k.a], k.metas, sha256s[k.a:k.b], payloads[k.a:k.b], digests[k.a:k.b],
      minted_keys[k.a:k.b]
    FROM (SELECT unnest(froms) AS a, unnest(tos) AS b, unnest(metas) AS metas) k;
    first_id := ids[1];
    ids := NULL;
    RETURN;
  END IF;

  PERFORM set_config('intray.pen', name, true);
  SELECT p.holder = intray.holder_of(name), c.position INTO is_held, put_through
  FROM intray.pen p, intray.index_cursors c WHERE p.only_one AND c.lane = 'events';
  IF is_held IS NOT TRUE THEN
    put_through := NULL;
    -- Somebody else has it: taken away here, and not within what append_arrivals undoes where it hoped in vain, to be done again.
    IF NOT is_held THEN
      INSERT INTO intray.dedupe SELECT d.* FROM intray.dedupe d WHERE false;
    END IF;
  END IF;
  SELECT a.ids, a.outcomes INTO ids, outcomes
  FROM intray.append_arrivals(minted_keys, digests, company_ids, sha256s, payloads, froms, tos, metas) a;
END
$$;

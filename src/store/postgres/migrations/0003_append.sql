-- Append as one statement: everything a batch needs, in one round trip and one transaction, whatever it collides with.
--
--   dedupe row   new → event                                      → s (stored)
--            existed → same minted key                            → s (a node's own retry)
--                      bytes of the first                         → resend row → d (duplicate)
--                      bytes of a kept revision                   → resend row → c (conflict)
--                      other bytes                                → revision   → c (conflict)
--
-- ids: for each item the id to answer with. outcomes: null if all are 's'.

CREATE FUNCTION intray.append_batch(
  minted_keys bytea[], digests bytea[], firsts boolean[], company_ids bigint[], account_ids bigint[],
  received_ats bigint[], key_ids text[], scopes text[], routes text[], origins text[], content_types text[],
  request_ids text[], source_refs text[], channel_refs text[], idempotency_keys text[], traceparents text[],
  user_agents text[], remote_addrs text[], sha256s bytea[], payloads bytea[],
  OUT ids bigint[], OUT outcomes "char"[])
LANGUAGE plpgsql
-- Plans are kept for the life of a session: one that was made while the tables were empty must not scan them when they are not.
SET enable_seqscan = off
AS $$
DECLARE
  total     CONSTANT integer := cardinality(digests);
  won_ids   bigint[];
  won_at    bigint[];
  item      record;
  first     record;
  same      boolean;
  kept      boolean;
  written   boolean;
  event_id_ bigint;
BEGIN
  -- Whatever the role, the database or a pooler set: an answer means on disk, here and on the standby that is waited for,
  -- and a wait that was cut short is told by a warning.
  IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  IF current_setting('client_min_messages') = 'error' THEN
    PERFORM set_config('client_min_messages', 'warning', true);
  END IF;

  -- The transaction takes its xid before it draws an id: what the watermark rests on (see watermark.ts).
  PERFORM pg_current_xact_id();

  -- Ids in the order of the items, keys in the order of their digests (two batches cannot wait for each other).
  WITH fresh AS MATERIALIZED (
    SELECT k.*, nextval('intray.event_ids') AS id
    FROM unnest(minted_keys, digests, firsts, company_ids, account_ids, received_ats, key_ids, scopes, routes, origins,
                content_types, request_ids, source_refs, channel_refs, idempotency_keys, traceparents, user_agents,
                remote_addrs, sha256s, payloads) WITH ORDINALITY
      AS k (minted_key, digest, is_first, company_id, account_id, received_at, key_id, scope, route, origin,
            content_type, request_id, source_ref, channel_ref, idempotency_key, traceparent, user_agent,
            remote_addr, sha256, payload, n)
    WHERE k.is_first
      AND (SELECT d.event_id FROM intray.dedupe d WHERE d.company_id = k.company_id AND d.digest = k.digest) IS NULL
  ), won AS (
    INSERT INTO intray.dedupe (company_id, digest, event_id, sha256, minted_key)
    SELECT f.company_id, f.digest, f.id, f.sha256, f.minted_key FROM fresh f ORDER BY f.company_id, f.digest
    ON CONFLICT DO NOTHING
    RETURNING event_id
  ), stored AS (
    INSERT INTO intray.events (id, kind, company_id, account_id, received_at, size, key_id, scope, route, origin,
      content_type, request_id, source_ref, channel_ref, idempotency_key, traceparent, user_agent, remote_addr, sha256,
      payload)
    SELECT f.id, 'event', f.company_id, f.account_id, f.received_at, octet_length(f.payload), f.key_id, f.scope,
      f.route, f.origin, f.content_type, f.request_id, f.source_ref, f.channel_ref, f.idempotency_key, f.traceparent,
      f.user_agent, f.remote_addr, f.sha256, f.payload
    FROM fresh f JOIN won ON won.event_id = f.id
  )
  SELECT array_agg(f.id ORDER BY f.n), array_agg(f.n ORDER BY f.n) INTO won_ids, won_at
  FROM fresh f JOIN won ON won.event_id = f.id;

  IF cardinality(won_ids) = total THEN
    ids := won_ids;
    RETURN;
  END IF;

  -- The rest came before: in this batch, earlier, or through another node a moment ago. Each statement below sees what is
  -- committed by now.
  written := won_ids IS NOT NULL;
  ids := array_fill(NULL::bigint, ARRAY[total]);
  outcomes := array_fill('s'::"char", ARRAY[total]);
  FOR i IN 1 .. coalesce(cardinality(won_ids), 0) LOOP
    ids[won_at[i]] := won_ids[i];
  END LOOP;

  FOR item IN
    SELECT k.*
    FROM unnest(minted_keys, digests, company_ids, account_ids, received_ats, key_ids, scopes, routes, origins,
                content_types, request_ids, source_refs, channel_refs, idempotency_keys, traceparents, user_agents,
                remote_addrs, sha256s, payloads) WITH ORDINALITY
      AS k (minted_key, digest, company_id, account_id, received_at, key_id, scope, route, origin, content_type,
            request_id, source_ref, channel_ref, idempotency_key, traceparent, user_agent, remote_addr, sha256, payload,
            n)
    WHERE ids[k.n] IS NULL
    ORDER BY k.company_id, k.digest, k.n
  LOOP
    SELECT d.event_id, d.sha256, d.minted_key INTO first
    FROM intray.dedupe d WHERE d.company_id = item.company_id AND d.digest = item.digest;
    IF NOT FOUND THEN
      -- The one before it in its batch failed, and the batch was split between them.
      INSERT INTO intray.dedupe (company_id, digest, event_id, sha256, minted_key)
      VALUES (item.company_id, item.digest, nextval('intray.event_ids'), item.sha256, item.minted_key)
      ON CONFLICT DO NOTHING
      RETURNING event_id INTO event_id_;
      IF NOT FOUND THEN
        RAISE EXCEPTION 'a dedupe key came and went' USING ERRCODE = 'serialization_failure';
      END IF;
      first := NULL;
    ELSIF first.minted_key = item.minted_key THEN
      ids[item.n] := first.event_id;
      CONTINUE;
    ELSE
      ids[item.n] := first.event_id;
      same := first.sha256 = item.sha256;
      outcomes[item.n] := CASE WHEN same THEN 'd' ELSE 'c' END;
      kept := same;
      IF NOT same THEN
        -- Two nodes with the same new bytes take turns, key by key in the order of the digests.
        PERFORM FROM intray.dedupe d WHERE d.company_id = item.company_id AND d.digest = item.digest
        FOR NO KEY UPDATE;
        kept := EXISTS (SELECT FROM intray.events e WHERE e.company_id = item.company_id
          AND e.revises = first.event_id AND e.sha256 = item.sha256 AND e.kind = 'revision');
      END IF;
      IF kept THEN
        INSERT INTO intray.resends (id, company_id, event_id, received_at, key_id, request_id)
        VALUES (nextval('intray.resend_ids'), item.company_id, first.event_id, item.received_at, item.key_id,
          item.request_id);
        written := true;
        CONTINUE;
      END IF;
      event_id_ := nextval('intray.event_ids');
    END IF;
    INSERT INTO intray.events (id, kind, revises, company_id, account_id, received_at, size, key_id, scope, route,
      origin, content_type, request_id, source_ref, channel_ref, idempotency_key, traceparent, user_agent, remote_addr,
      sha256, payload)
    VALUES (event_id_, CASE WHEN ids[item.n] IS NULL THEN 'event' ELSE 'revision' END, ids[item.n], item.company_id,
      item.account_id, item.received_at, octet_length(item.payload), item.key_id, item.scope, item.route, item.origin,
      item.content_type, item.request_id, item.source_ref, item.channel_ref, item.idempotency_key, item.traceparent,
      item.user_agent, item.remote_addr, item.sha256, item.payload);
    ids[item.n] := coalesce(ids[item.n], event_id_);
    written := true;
  END LOOP;

  -- A retry that finds everything stored writes nothing, and a commit of nothing waits for no standby: the first try may
  -- have been cut off in that very wait. So something is written, and with its commit all before it are safe.
  IF NOT written THEN
    UPDATE intray.meta SET value = value WHERE key = 'fence';
  END IF;
END
$$;

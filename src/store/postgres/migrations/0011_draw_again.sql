-- append_arrivals as in 0010, but where others drew ids at the same moment it draws again, three times at most: with many nodes in a
-- burst a batch would else often take the longer way, by append_messages.
CREATE OR REPLACE FUNCTION intray.append_arrivals(
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
  FOR tries IN 1..3 LOOP
    ids := ARRAY(SELECT nextval('intray.event_ids') FROM unnest(digests));
    consecutive := ids[total] - ids[1] = total - 1;
    EXIT WHEN consecutive;
  END LOOP;

  -- Keys in the order of their digests: two batches cannot wait for each other.
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

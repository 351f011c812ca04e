-- Between coordinators and workers: who is there, what is offered, what came back. It lies in a
-- schema of its own, beside procrastinate's tables. All of it is passing: the journal holds what
-- counts, and what is missing here is offered again. Workers reach these tables through the functions
-- below alone, each of which asks for what only the holder of a dispatch can know. They are strict: who
-- leaves something out, such as the token, gets nothing.

CREATE TABLE workers (
    worker_id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    host TEXT NOT NULL,
    pid BIGINT NOT NULL,
    version TEXT NOT NULL,
    queues TEXT[] NOT NULL,
    accounts TEXT[] NOT NULL,
    agents TEXT NOT NULL,
    labels TEXT[] NOT NULL,
    slots BIGINT NOT NULL,
    state TEXT NOT NULL DEFAULT 'ready' CHECK (state IN ('ready', 'draining')),
    held TEXT NOT NULL DEFAULT '[]',
    started_at FLOAT NOT NULL,
    seen_at FLOAT NOT NULL,
    lease FLOAT NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 100);

COMMENT ON TABLE workers IS
    'One row per worker process. A worker is alive for `lease` seconds after `seen_at`.';

CREATE TABLE offers (
    dispatch_id BIGINT NOT NULL PRIMARY KEY,
    run_id BIGINT NOT NULL,
    case_id TEXT NOT NULL,
    step TEXT NOT NULL,
    role TEXT NOT NULL,
    queue TEXT NOT NULL,
    priority INTEGER NOT NULL,
    fence BIGINT NOT NULL,
    secret TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('offered', 'taken', 'replied', 'settled')),
    ask BYTEA,
    timeout FLOAT,
    worker TEXT,
    losses BIGINT NOT NULL,
    offered_at FLOAT NOT NULL,
    taken_at FLOAT,
    deadline FLOAT,
    settled_at FLOAT,
    answer_hash BYTEA
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200);

COMMENT ON TABLE offers IS
    'Dispatches for workers. Each time one is offered, its fence rises; only the reply of the
    worker that took it under the newest fence counts.';

CREATE INDEX offers_to_take ON offers (queue, priority DESC, dispatch_id) WHERE state = 'offered';

CREATE INDEX open_offers_of_run ON offers (run_id) WHERE state <> 'settled';

CREATE INDEX settled_offers ON offers (settled_at) WHERE state = 'settled';

CREATE INDEX taken_offers ON offers (worker) WHERE state = 'taken';

CREATE TABLE replies (
    dispatch_id BIGINT NOT NULL,
    fence BIGINT NOT NULL,
    problem TEXT NOT NULL,
    run_id BIGINT NOT NULL,
    queue TEXT NOT NULL,
    worker TEXT NOT NULL,
    account TEXT NOT NULL,
    limited BOOLEAN NOT NULL,
    body BYTEA NOT NULL,
    at FLOAT NOT NULL,
    PRIMARY KEY (dispatch_id, fence, problem)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200);

COMMENT ON TABLE replies IS
    'What workers answered, until the coordinator has decided. With a `problem` it cannot be an
    answer any more, and is here to be journaled as refused.';

CREATE INDEX replies_of_run ON replies (run_id);

CREATE TABLE account_limits (
    account TEXT NOT NULL PRIMARY KEY,
    until FLOAT NOT NULL,
    guesses BIGINT NOT NULL,
    reason TEXT NOT NULL
);

COMMENT ON TABLE account_limits IS 'Accounts of agents that rest because of a rate limit.';

CREATE FUNCTION interlock_now() RETURNS FLOAT LANGUAGE sql AS
$$ SELECT extract(epoch FROM clock_timestamp())::float $$;

CREATE FUNCTION interlock_token(secret TEXT, fence BIGINT) RETURNS TEXT LANGUAGE sql IMMUTABLE STRICT AS
$$ SELECT encode(sha256(convert_to(secret || ':' || fence, 'UTF8')), 'hex') $$;

-- A worker is here, or back.
CREATE FUNCTION interlock_join(
    p_worker TEXT, p_name TEXT, p_host TEXT, p_pid BIGINT, p_version TEXT, p_queues TEXT[],
    p_accounts TEXT[], p_agents TEXT, p_labels TEXT[], p_slots BIGINT, p_lease FLOAT
) RETURNS VOID LANGUAGE plpgsql STRICT SECURITY DEFINER AS $$
BEGIN
    IF p_slots NOT BETWEEN 1 AND 100000 OR p_lease NOT BETWEEN 1 AND 3600
        OR length(p_worker) <> 32 OR cardinality(p_queues) <> cardinality(p_accounts)
        OR octet_length(p_agents) + octet_length(array_to_string(p_queues || p_labels, '')) > 65536
        OR octet_length(p_name || p_host || p_version) > 1000
    THEN
        RAISE EXCEPTION 'this worker cannot be: %', left(p_name, 100) USING ERRCODE = 'check_violation';
    END IF;
    INSERT INTO workers (worker_id, name, host, pid, version, queues, accounts, agents, labels,
        slots, started_at, seen_at, lease)
    VALUES (p_worker, p_name, p_host, p_pid, p_version, p_queues, p_accounts, p_agents, p_labels,
        p_slots, interlock_now(), interlock_now(), p_lease)
    ON CONFLICT (worker_id) DO UPDATE SET seen_at = interlock_now();
    PERFORM pg_notify('interlock_replies', '');
END $$;

-- A worker lives, and holds these. Returns which of them are still its own, whether it is known at
-- all, and for how many seconds accounts rest. What it should hold and does not, because it never
-- heard of it, is free for others.
CREATE FUNCTION interlock_beat(
    p_worker TEXT, p_state TEXT, p_held BIGINT[], p_fences BIGINT[], p_details TEXT
) RETURNS TEXT LANGUAGE plpgsql STRICT SECURITY DEFINER AS $$
DECLARE
    v_known BOOLEAN;
    v_answer TEXT;
BEGIN
    UPDATE workers SET seen_at = interlock_now(), state = p_state,
        held = CASE WHEN octet_length(p_details) <= 1000000 THEN p_details ELSE '[]' END
    WHERE worker_id = p_worker;
    v_known := FOUND;
    UPDATE offers SET worker = NULL WHERE worker = p_worker AND state = 'taken'
        AND NOT dispatch_id = ANY(p_held) AND taken_at < interlock_now() - 10;
    IF FOUND THEN
        PERFORM pg_notify('interlock_replies', '');
    END IF;
    SELECT json_build_object(
        'known', v_known,
        'held', coalesce((
            SELECT json_agg(o.dispatch_id) FROM unnest(p_held, p_fences) AS h(dispatch_id, fence)
            JOIN offers o ON o.dispatch_id = h.dispatch_id AND o.fence = h.fence
            WHERE o.worker = p_worker AND o.state = 'taken'
        ), '[]'::json),
        'limits', coalesce((
            SELECT json_object_agg(account, until - interlock_now()) FROM account_limits
            WHERE until > interlock_now()
        ), '{}'::json)
    )::text INTO v_answer;
    RETURN v_answer;
END $$;

-- Take what is offered under that fence, unless another has it, or it is not needed any more; and with
-- it up to p_more others of these queues, most urgent first, whose jobs nobody need fetch then. Where
-- several workers wait, each has its share.
CREATE FUNCTION interlock_take(
    p_worker TEXT, p_dispatch BIGINT, p_fence BIGINT, p_queues TEXT[], p_more BIGINT
) RETURNS TABLE (dispatch_id BIGINT, fence BIGINT, ask BYTEA, token TEXT)
LANGUAGE plpgsql STRICT SECURITY DEFINER AS $$
#variable_conflict use_column
DECLARE
    v_queues TEXT[];
    v_workers BIGINT;
    v_share BIGINT;
BEGIN
    UPDATE workers w SET seen_at = interlock_now() WHERE w.worker_id = p_worker
    RETURNING w.queues INTO v_queues;
    RETURN QUERY
    UPDATE offers o SET state = 'taken', worker = p_worker, taken_at = interlock_now(),
        deadline = interlock_now() + o.timeout
    WHERE o.dispatch_id = p_dispatch AND o.fence = p_fence AND o.state = 'offered'
        AND o.queue = ANY(v_queues)
    RETURNING o.dispatch_id, o.fence, o.ask, interlock_token(o.secret, o.fence);
    IF v_queues IS NULL OR p_more < 1 THEN
        RETURN;
    END IF;
    SELECT array_agg(q) INTO v_queues FROM unnest(v_queues) AS q WHERE q = ANY(p_queues);
    SELECT greatest(1, count(*)) INTO v_workers FROM workers w
    WHERE w.queues && v_queues AND w.state = 'ready' AND w.seen_at + w.lease >= interlock_now();
    SELECT ceil(count(*)::float / v_workers) INTO v_share FROM (
        SELECT 1 FROM offers o WHERE o.state = 'offered' AND o.queue = ANY(v_queues)
        LIMIT p_more * v_workers
    ) AS waiting;
    -- Offers are locked before jobs, as everywhere.
    RETURN QUERY
    WITH others AS MATERIALIZED (
        SELECT o.dispatch_id, o.fence FROM offers o
        WHERE o.state = 'offered' AND o.queue = ANY(v_queues)
        ORDER BY o.priority DESC, o.dispatch_id LIMIT v_share FOR UPDATE SKIP LOCKED
    ), carried AS (
        DELETE FROM procrastinate_jobs j USING others n
        WHERE j.queueing_lock = n.dispatch_id || ':' || n.fence AND j.status = 'todo'
    )
    UPDATE offers o SET state = 'taken', worker = p_worker, taken_at = interlock_now(),
        deadline = interlock_now() + o.timeout
    FROM others n
    WHERE o.dispatch_id = n.dispatch_id AND o.fence = n.fence AND o.state = 'offered'
    RETURNING o.dispatch_id, o.fence, o.ask, interlock_token(o.secret, o.fence);
END $$;

-- The reply to a dispatch: 'accepted', if it was taken under this fence and is still wanted. Else it
-- is kept as refused, and the answer says why: 'stale', 'forged' or 'unknown'.
CREATE FUNCTION interlock_reply(
    p_worker TEXT, p_dispatch BIGINT, p_fence BIGINT, p_token TEXT, p_body BYTEA,
    p_account TEXT, p_seconds FLOAT, p_limited BOOLEAN, p_reason TEXT
) RETURNS TEXT LANGUAGE plpgsql STRICT SECURITY DEFINER AS $$
DECLARE
    v_offer offers%ROWTYPE;
    v_problem TEXT := '';
    v_hash BYTEA := sha256(p_body);
BEGIN
    IF octet_length(p_body) > 2000000 THEN
        RAISE EXCEPTION 'a reply of % bytes is too long', octet_length(p_body)
            USING ERRCODE = 'string_data_right_truncation';
    END IF;
    SELECT * INTO v_offer FROM offers WHERE dispatch_id = p_dispatch FOR UPDATE;
    IF NOT FOUND THEN
        RETURN 'unknown';
    END IF;
    IF p_token <> interlock_token(v_offer.secret, p_fence) THEN
        v_problem := 'forged';
    ELSIF v_offer.fence = p_fence AND v_offer.answer_hash = v_hash THEN
        RETURN 'accepted';  -- said again, because nobody heard that it was
    ELSIF v_offer.fence <> p_fence OR v_offer.state <> 'taken' OR v_offer.worker <> p_worker THEN
        v_problem := 'stale';
    END IF;
    IF v_problem = '' THEN
        UPDATE offers SET state = 'replied', answer_hash = v_hash WHERE dispatch_id = p_dispatch;
        IF p_limited AND p_account <> '' THEN
            INSERT INTO account_limits VALUES (p_account,
                interlock_now() + CASE WHEN p_seconds > 0 THEN p_seconds ELSE 60 END,
                CASE WHEN p_seconds > 0 THEN 0 ELSE 1 END, left(p_reason, 1000))
            ON CONFLICT (account) DO UPDATE SET
                until = interlock_now() + CASE WHEN p_seconds > 0 THEN p_seconds
                    ELSE least(1800, 60 * 2 ^ least(account_limits.guesses, 10)) END,
                guesses = CASE WHEN p_seconds > 0 THEN 0 ELSE account_limits.guesses + 1 END,
                reason = excluded.reason;
        ELSIF p_account <> '' THEN
            DELETE FROM account_limits WHERE account = p_account AND until < interlock_now();
        END IF;
    END IF;
    INSERT INTO replies VALUES (p_dispatch, CASE v_problem WHEN 'forged' THEN 0 ELSE p_fence END,
        v_problem, v_offer.run_id, v_offer.queue, p_worker, p_account, p_limited, p_body,
        interlock_now())
    ON CONFLICT DO NOTHING;
    PERFORM pg_notify('interlock_replies', v_offer.run_id::text);
    RETURN CASE v_problem WHEN '' THEN 'accepted' ELSE v_problem END;
END $$;

-- Give a dispatch back that was taken and will not be answered: others may have it at once.
CREATE FUNCTION interlock_give_back(p_worker TEXT, p_dispatch BIGINT, p_fence BIGINT, p_token TEXT)
RETURNS BOOLEAN LANGUAGE plpgsql STRICT SECURITY DEFINER AS $$
BEGIN
    UPDATE offers SET worker = NULL, losses = losses - 1
    WHERE dispatch_id = p_dispatch AND fence = p_fence AND state = 'taken' AND worker = p_worker
        AND p_token = interlock_token(secret, fence);
    IF NOT FOUND THEN
        RETURN FALSE;
    END IF;
    PERFORM pg_notify('interlock_replies', '');
    RETURN TRUE;
END $$;

-- A worker has ended. Whatever it still holds is free for others.
CREATE FUNCTION interlock_leave(p_worker TEXT) RETURNS VOID LANGUAGE plpgsql STRICT SECURITY DEFINER AS $$
BEGIN
    DELETE FROM workers WHERE worker_id = p_worker;
    UPDATE offers SET worker = NULL WHERE worker = p_worker AND state = 'taken';
    PERFORM pg_notify('interlock_replies', '');
END $$;

-- They act with their owner's rights, so they see no tables but these, whatever else bears a name of
-- theirs, and are for nobody until they are granted. procrastinate's triggers find its tables, too.
DO $$
DECLARE
    v_name REGPROCEDURE;
BEGIN
    FOR v_name IN SELECT oid::regprocedure FROM pg_proc
        WHERE pronamespace = current_schema()::regnamespace
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path TO %I, pg_temp', v_name, current_schema());
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', v_name);
    END LOOP;
END $$;

ALTER TABLE procrastinate_jobs SET (
    fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200
);

ALTER TABLE procrastinate_events SET (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200
);

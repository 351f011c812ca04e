-- Between coordinators and workers, beside procrastinate's tables in a schema of its own. procrastinate
-- distributes: one job per dispatch, fetched, kept alive and retried by its rules. These tables decide
-- which reply counts. All of it is passing: the journal holds what counts, and what is missing here is
-- offered again. Workers reach these tables only through the functions below. The functions are strict:
-- a caller that leaves something out, such as the token, gets nothing.

CREATE TABLE offers (
    dispatch_id BIGINT NOT NULL PRIMARY KEY,
    run_id BIGINT NOT NULL,
    queue TEXT NOT NULL,
    priority INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('open', 'replied', 'settled')),
    job_id BIGINT NOT NULL DEFAULT 0,
    fence BIGINT NOT NULL DEFAULT 0,
    tokens TEXT[] NOT NULL DEFAULT '{}',
    worker BIGINT,
    ask BYTEA,
    timeout FLOAT,
    deadline FLOAT,
    losses BIGINT NOT NULL DEFAULT 0,
    settled_at FLOAT,
    answer_hash BYTEA
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200);

COMMENT ON TABLE offers IS
    'Dispatches for workers. Each time a worker takes one, its fence rises and it gets a new token;
    only a reply with the token of the newest fence counts.';

CREATE INDEX open_offers_of_run ON offers (run_id) WHERE state <> 'settled';

CREATE INDEX settled_offers ON offers (settled_at) WHERE state = 'settled';

CREATE INDEX offers_by_job ON offers (job_id);

CREATE TABLE replies (
    dispatch_id BIGINT NOT NULL,
    fence BIGINT NOT NULL,
    problem TEXT NOT NULL,
    run_id BIGINT NOT NULL,
    queue TEXT NOT NULL,
    account TEXT NOT NULL,
    limited BOOLEAN NOT NULL,
    body BYTEA NOT NULL,
    at FLOAT NOT NULL,
    PRIMARY KEY (dispatch_id, fence, problem)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200);

COMMENT ON TABLE replies IS
    'Replies of workers, until the coordinator has decided. One with a `problem` was refused, and is
    kept to be journaled.';

CREATE INDEX replies_of_run ON replies (run_id);

CREATE TABLE workers (
    worker BIGINT NOT NULL PRIMARY KEY REFERENCES procrastinate_workers ON DELETE CASCADE,
    process TEXT NOT NULL UNIQUE,
    about JSONB NOT NULL,
    slots BIGINT NOT NULL CHECK (slots BETWEEN 1 AND 100000),
    lease FLOAT NOT NULL CHECK (lease BETWEEN 1 AND 3600),
    state TEXT NOT NULL CHECK (state IN ('ready', 'draining')),
    held TEXT NOT NULL,
    started_at FLOAT NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 100);

COMMENT ON TABLE workers IS
    'A description of each worker of procrastinate, which holds its heartbeat. A worker is alive for
    `lease` seconds after its last heartbeat.';

CREATE TABLE account_limits (
    account TEXT NOT NULL PRIMARY KEY,
    until FLOAT NOT NULL,
    guesses BIGINT NOT NULL,
    reason TEXT NOT NULL
);

COMMENT ON TABLE account_limits IS 'Accounts of agents that rest because of a rate limit.';

CREATE FUNCTION interlock_now() RETURNS FLOAT LANGUAGE sql AS
$$ SELECT extract(epoch FROM clock_timestamp())::float $$;

-- Describe a worker, and return for how many seconds accounts rest.
CREATE FUNCTION interlock_present(
    p_worker BIGINT, p_process TEXT, p_about JSONB, p_state TEXT, p_held TEXT
) RETURNS TEXT LANGUAGE plpgsql STRICT SECURITY DEFINER AS $$
BEGIN
    IF octet_length(p_about::text) > 65536 THEN
        RAISE EXCEPTION 'this worker describes itself with too many words'
            USING ERRCODE = 'check_violation';
    END IF;
    UPDATE workers SET state = p_state,
        held = CASE WHEN octet_length(p_held) <= 1000000 THEN p_held ELSE '[]' END
    WHERE worker = p_worker AND process = p_process;
    IF NOT FOUND THEN
        DELETE FROM workers WHERE process = p_process;
        INSERT INTO workers VALUES (p_worker, p_process, p_about, (p_about->>'slots')::bigint,
            (p_about->>'lease')::float, p_state, '[]', interlock_now());
        PERFORM pg_notify('interlock_replies', '');
    END IF;
    RETURN coalesce((
        SELECT json_object_agg(account, until - interlock_now()) FROM account_limits
        WHERE until > interlock_now()
    ), '{}'::json)::text;
END $$;

-- Take the dispatch of a job that this worker has fetched, under a new fence.
CREATE FUNCTION interlock_take(p_job BIGINT, p_worker BIGINT)
RETURNS TABLE (dispatch_id BIGINT, fence BIGINT, ask BYTEA, token TEXT)
LANGUAGE sql STRICT SECURITY DEFINER AS $$
    UPDATE offers o SET fence = o.fence + 1, tokens = o.tokens || gen_random_uuid()::text,
        worker = p_worker, deadline = interlock_now() + o.timeout
    FROM procrastinate_jobs j
    WHERE o.job_id = p_job AND o.state = 'open'
        AND j.id = p_job AND j.status = 'doing' AND j.worker_id = p_worker
    RETURNING o.dispatch_id, o.fence, o.ask, o.tokens[o.fence]
$$;

-- Accept the reply to a dispatch if it was taken under the newest fence and is still open. Any other
-- is kept as refused, and the result says why: 'stale', 'forged' or 'unknown'.
CREATE FUNCTION interlock_reply(
    p_dispatch BIGINT, p_fence BIGINT, p_token TEXT, p_body BYTEA,
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
    IF (v_offer.tokens[p_fence] = p_token) IS NOT TRUE THEN
        v_problem := 'forged';
    ELSIF v_offer.fence = p_fence AND v_offer.answer_hash = v_hash THEN
        RETURN 'accepted';  -- repeated by a worker that did not hear so
    ELSIF v_offer.fence <> p_fence OR v_offer.state <> 'open' THEN
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
        v_problem, v_offer.run_id, v_offer.queue, p_account, p_limited, p_body, interlock_now())
    ON CONFLICT DO NOTHING;
    PERFORM pg_notify('interlock_replies', v_offer.run_id::text);
    RETURN CASE v_problem WHEN '' THEN 'accepted' ELSE v_problem END;
END $$;

-- procrastinate lets any worker finish any job. One that was cut off must not remove the job that
-- another works on by now: the job of an open offer stays.
CREATE FUNCTION interlock_keep_job() RETURNS TRIGGER LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM offers WHERE job_id = OLD.id AND state = 'open') THEN
        RETURN NULL;
    END IF;
    RETURN OLD;
END $$;

CREATE TRIGGER interlock_keep_job BEFORE DELETE ON procrastinate_jobs
    FOR EACH ROW EXECUTE FUNCTION interlock_keep_job();

-- Functions that act with their owner's rights see only the tables of this schema, and nobody may call
-- them until that is granted. procrastinate's triggers find its tables in the same way.
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

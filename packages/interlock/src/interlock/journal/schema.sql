-- The journal's tables in a SQLite file. Rows of `journal`, `dispatches` and `blobs`
-- are only added; cases are their fold. Prompts and answers are blobs, so that rows stay small and
-- equal texts are kept once. schema_postgres.sql declares the same tables; a test compares them.

-- The version of the journal's tables, and of those of each installed feature.
CREATE TABLE schema_versions (
    part TEXT NOT NULL,
    version INTEGER NOT NULL,
    PRIMARY KEY (part)
);

CREATE TABLE blobs (
    blob_id INTEGER NOT NULL,
    hash BLOB NOT NULL,
    packed INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (blob_id)
);

CREATE TABLE runs (
    run_id INTEGER NOT NULL,
    circuit TEXT NOT NULL,
    version INTEGER NOT NULL,
    text INTEGER NOT NULL,
    source TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    options TEXT NOT NULL,
    status TEXT NOT NULL,
    seconds FLOAT NOT NULL,
    created_at FLOAT NOT NULL,
    changed_at FLOAT NOT NULL,
    PRIMARY KEY (run_id),
    CONSTRAINT run_status CHECK (
        status in ('running', 'stopped', 'waiting', 'rate-limited', 'budget', 'done', 'unhealthy')
    ),
    FOREIGN KEY(text) REFERENCES blobs (blob_id)
);

CREATE TABLE cases (
    case_no INTEGER NOT NULL,
    run_id INTEGER NOT NULL,
    case_id TEXT NOT NULL,
    input INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    needs TEXT NOT NULL,
    status TEXT NOT NULL,
    step TEXT NOT NULL,
    dispatch_id INTEGER,
    state TEXT NOT NULL,
    PRIMARY KEY (case_no),
    UNIQUE (run_id, case_id),
    CONSTRAINT case_status CHECK (status in ('open', 'ended', 'stuck')),
    FOREIGN KEY(run_id) REFERENCES runs (run_id),
    FOREIGN KEY(input) REFERENCES blobs (blob_id)
);

-- A dispatch is open while its case points at it, so settling one changes no old row.
CREATE TABLE dispatches (
    dispatch_id INTEGER NOT NULL,
    case_no INTEGER NOT NULL,
    step TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    role TEXT NOT NULL,
    prompt INTEGER NOT NULL,
    at FLOAT NOT NULL,
    PRIMARY KEY (dispatch_id),
    FOREIGN KEY(case_no) REFERENCES cases (case_no),
    FOREIGN KEY(prompt) REFERENCES blobs (blob_id)
);

CREATE TABLE journal (
    seq INTEGER NOT NULL,
    case_no INTEGER NOT NULL,
    dispatch_id INTEGER NOT NULL,
    at FLOAT NOT NULL,
    answer INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    money FLOAT NOT NULL,
    decision TEXT NOT NULL,
    epoch INTEGER DEFAULT 0 NOT NULL,
    PRIMARY KEY (seq),
    CONSTRAINT one_answer_per_dispatch UNIQUE (case_no, dispatch_id),
    FOREIGN KEY(case_no) REFERENCES cases (case_no),
    FOREIGN KEY(dispatch_id) REFERENCES dispatches (dispatch_id),
    FOREIGN KEY(answer) REFERENCES blobs (blob_id)
);

CREATE TABLE refusals (
    refusal_id INTEGER NOT NULL,
    run_id INTEGER NOT NULL,
    case_no INTEGER,
    dispatch_id INTEGER,
    at FLOAT NOT NULL,
    reason TEXT NOT NULL,
    sentence TEXT NOT NULL,
    content INTEGER NOT NULL,
    content_hash BLOB NOT NULL,
    PRIMARY KEY (refusal_id),
    UNIQUE (run_id, dispatch_id, reason, content_hash),
    FOREIGN KEY(run_id) REFERENCES runs (run_id),
    FOREIGN KEY(content) REFERENCES blobs (blob_id)
);

CREATE TABLE questions (
    question_id INTEGER NOT NULL,
    case_no INTEGER NOT NULL,
    answered_at FLOAT,
    answered_by TEXT,
    PRIMARY KEY (question_id),
    FOREIGN KEY(question_id) REFERENCES dispatches (dispatch_id),
    FOREIGN KEY(case_no) REFERENCES cases (case_no)
);

-- Questions of Interlock itself about a run, not at a gate of a case. They share the numbers of
-- dispatches.
CREATE TABLE inquiries (
    question_id INTEGER NOT NULL,
    run_id INTEGER NOT NULL,
    kind TEXT NOT NULL,
    about TEXT NOT NULL,
    asked_at FLOAT NOT NULL,
    answered_at FLOAT,
    answered_by TEXT,
    answer TEXT,
    PRIMARY KEY (question_id),
    FOREIGN KEY(run_id) REFERENCES runs (run_id)
);

-- Rate limits that dispatches met; each dispatch stays open and is sent again when the limit ends.
CREATE TABLE pauses (
    pause_id INTEGER NOT NULL,
    run_id INTEGER NOT NULL,
    dispatch_id INTEGER NOT NULL,
    account TEXT NOT NULL,
    at FLOAT NOT NULL,
    until FLOAT NOT NULL,
    guesses INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    money FLOAT NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (pause_id),
    FOREIGN KEY(run_id) REFERENCES runs (run_id),
    FOREIGN KEY(dispatch_id) REFERENCES dispatches (dispatch_id)
);

-- Answered requests to model endpoints, with or without a usable answer.
CREATE TABLE calls (
    call_id INTEGER NOT NULL,
    run_id INTEGER NOT NULL,
    dispatch_id INTEGER NOT NULL,
    at FLOAT NOT NULL,
    model TEXT NOT NULL,
    request_id TEXT NOT NULL,
    input INTEGER NOT NULL,
    cached INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    output INTEGER NOT NULL,
    money FLOAT NOT NULL,
    is_estimate INTEGER NOT NULL,
    PRIMARY KEY (call_id),
    FOREIGN KEY(run_id) REFERENCES runs (run_id),
    FOREIGN KEY(dispatch_id) REFERENCES dispatches (dispatch_id)
);

-- Seconds per day in which agents of a role were out; the role '' holds the time the run was worked
-- on.
CREATE TABLE worked (
    day TEXT NOT NULL,
    run_id INTEGER NOT NULL,
    role TEXT NOT NULL,
    seconds FLOAT NOT NULL,
    PRIMARY KEY (day, run_id, role),
    FOREIGN KEY(run_id) REFERENCES runs (run_id)
) WITHOUT ROWID;

-- The present or last process that works on a run. The epoch rises each time a run is taken; writes
-- under an older epoch fail. Times are those of the database. `owner` is null once a run is given
-- back.
CREATE TABLE owners (
    run_id INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    owner TEXT,
    name TEXT NOT NULL,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    command TEXT NOT NULL,
    since FLOAT NOT NULL,
    lease_until FLOAT NOT NULL,
    PRIMARY KEY (run_id),
    FOREIGN KEY(run_id) REFERENCES runs (run_id)
);

-- Messages of people and other processes to a run.
CREATE TABLE mail (
    box TEXT NOT NULL,
    name TEXT NOT NULL,
    body BLOB NOT NULL,
    run_id INTEGER,
    written_by TEXT DEFAULT '' NOT NULL,
    at FLOAT NOT NULL,
    PRIMARY KEY (box, name)
);

-- Tokens for the HTTP API; only a salted hash of each secret is kept.
CREATE TABLE tokens (
    token_id TEXT NOT NULL,
    name TEXT NOT NULL,
    salt BLOB NOT NULL,
    hash BLOB NOT NULL,
    scopes TEXT NOT NULL,
    created_at FLOAT NOT NULL,
    created_by TEXT NOT NULL,
    expires_at FLOAT,
    used_at FLOAT,
    revoked_at FLOAT,
    PRIMARY KEY (token_id)
);

-- Dispatches that agents on this machine may take, with their holders and leases.
CREATE TABLE offers (
    dispatch_id INTEGER NOT NULL,
    session TEXT NOT NULL,
    run_id INTEGER NOT NULL,
    case_id TEXT NOT NULL,
    step TEXT NOT NULL,
    role TEXT NOT NULL,
    work TEXT NOT NULL,
    timeout FLOAT,
    state TEXT NOT NULL,
    fence INTEGER NOT NULL,
    token TEXT NOT NULL,
    holder TEXT NOT NULL,
    ttl FLOAT NOT NULL,
    lease_until FLOAT,
    first_taken_at FLOAT,
    PRIMARY KEY (dispatch_id),
    CONSTRAINT offer_state CHECK (state in ('offered', 'taken', 'replied'))
);

-- Replies to offers, kept until the run has taken them and the agent has its verdict.
CREATE TABLE replies (
    reply_id TEXT NOT NULL,
    dispatch_id INTEGER NOT NULL,
    session TEXT NOT NULL,
    content BLOB NOT NULL,
    failure TEXT NOT NULL,
    reason TEXT NOT NULL,
    refused TEXT NOT NULL,
    verdict TEXT,
    at FLOAT NOT NULL,
    PRIMARY KEY (reply_id)
);

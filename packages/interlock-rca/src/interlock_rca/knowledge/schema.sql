-- RCA's tables in a SQLite file. What must always hold is a constraint here, so that no writer can
-- forget it. schema_postgres.sql declares the same; a test compares them.

-- A story that failures tell again and again.
CREATE TABLE symptoms (
    symptom_id INTEGER NOT NULL,
    fingerprint TEXT NOT NULL,
    name TEXT NOT NULL,
    error_pattern TEXT NOT NULL,
    test_name_pattern TEXT NOT NULL,
    features TEXT NOT NULL,
    component TEXT NOT NULL,
    severity TEXT NOT NULL,
    first_seen_at FLOAT NOT NULL,
    last_seen_at FLOAT NOT NULL,
    occurrence_count INTEGER NOT NULL,
    status TEXT NOT NULL,
    PRIMARY KEY (symptom_id),
    CONSTRAINT one_symptom_per_fingerprint UNIQUE (fingerprint),
    CONSTRAINT symptom_fingerprint CHECK (fingerprint != ''),
    CONSTRAINT symptom_status CHECK (status in ('active', 'dormant', 'resolved')),
    CONSTRAINT symptom_count CHECK (occurrence_count >= 1),
    CONSTRAINT symptom_times CHECK (first_seen_at <= last_seen_at)
);

CREATE TABLE versions (
    version_id INTEGER NOT NULL,
    label TEXT NOT NULL,
    PRIMARY KEY (version_id),
    CONSTRAINT one_version_per_label UNIQUE (label)
);

CREATE TABLE symptom_bands (
    band INTEGER NOT NULL,
    symptom_id INTEGER NOT NULL,
    PRIMARY KEY (band, symptom_id),
    FOREIGN KEY(symptom_id) REFERENCES symptoms (symptom_id)
) WITHOUT ROWID;

-- A suite is a run, and an RCA case is a case: the kernel's rows hold where they stand, these what
-- they are about.
CREATE TABLE suites (
    suite_id INTEGER NOT NULL,
    run_id INTEGER NOT NULL,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    status TEXT NOT NULL,
    created_at FLOAT NOT NULL,
    closed_at FLOAT,
    PRIMARY KEY (suite_id),
    CONSTRAINT one_suite_per_run UNIQUE (run_id),
    CONSTRAINT suite_status CHECK (status in ('open', 'closed')),
    CONSTRAINT suite_closed CHECK ((status = 'closed') = (closed_at is not null)),
    CONSTRAINT suite_times CHECK (created_at <= closed_at),
    FOREIGN KEY(run_id) REFERENCES runs (run_id)
);

CREATE TABLE sightings (
    symptom_id INTEGER NOT NULL,
    case_no INTEGER NOT NULL,
    at FLOAT NOT NULL,
    PRIMARY KEY (symptom_id, case_no),
    FOREIGN KEY(symptom_id) REFERENCES symptoms (symptom_id),
    FOREIGN KEY(case_no) REFERENCES cases (case_no)
) WITHOUT ROWID;

-- A root cause explains some symptoms.
CREATE TABLE rcas (
    rca_id INTEGER NOT NULL,
    case_no INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    title TEXT NOT NULL,
    description TEXT NOT NULL,
    defect_type TEXT NOT NULL,
    category TEXT NOT NULL,
    component TEXT NOT NULL,
    affected_versions TEXT NOT NULL,
    evidence TEXT NOT NULL,
    convergence_score FLOAT,
    jira_ticket_id TEXT NOT NULL,
    jira_link TEXT NOT NULL,
    status TEXT NOT NULL,
    created_at FLOAT NOT NULL,
    resolved_at FLOAT,
    verified_at FLOAT,
    archived_at FLOAT,
    PRIMARY KEY (rca_id),
    CONSTRAINT one_rca_per_attempt UNIQUE (case_no, attempt),
    CONSTRAINT rca_attempt CHECK (attempt >= 0),
    CONSTRAINT rca_category CHECK (
        category in ('product', 'automation', 'infra', 'flake', 'firmware', 'unknown')
    ),
    CONSTRAINT rca_score CHECK (convergence_score between 0 and 1),
    CONSTRAINT rca_status CHECK (status in ('open', 'resolved', 'verified', 'archived')),
    CONSTRAINT rca_archived CHECK ((status = 'archived') = (archived_at is not null)),
    CONSTRAINT rca_resolved CHECK (
        status = 'archived' or (resolved_at is not null) = (status in ('resolved', 'verified'))
    ),
    CONSTRAINT rca_verified CHECK (
        status = 'archived' or (verified_at is not null) = (status = 'verified')
    ),
    CONSTRAINT rca_times CHECK (
        created_at <= resolved_at and resolved_at <= verified_at and created_at <= archived_at and
        resolved_at <= archived_at and verified_at <= archived_at
    ),
    FOREIGN KEY(case_no) REFERENCES cases (case_no)
);
CREATE UNIQUE INDEX one_open_rca_per_case ON rcas (case_no) WHERE status = 'open';

CREATE TABLE circuits (
    circuit_id INTEGER NOT NULL,
    suite_id INTEGER NOT NULL,
    version_id INTEGER NOT NULL,
    name TEXT NOT NULL,
    status TEXT NOT NULL,
    started_at FLOAT,
    ended_at FLOAT,
    PRIMARY KEY (circuit_id),
    CONSTRAINT one_circuit_per_name UNIQUE (suite_id, version_id, name),
    FOREIGN KEY(suite_id) REFERENCES suites (suite_id),
    FOREIGN KEY(version_id) REFERENCES versions (version_id)
);

CREATE TABLE symptom_rca (
    symptom_id INTEGER NOT NULL,
    rca_id INTEGER NOT NULL,
    case_no INTEGER NOT NULL,
    confidence FLOAT,
    notes TEXT NOT NULL,
    linked_at FLOAT NOT NULL,
    PRIMARY KEY (symptom_id, rca_id),
    CONSTRAINT link_confidence CHECK (confidence between 0 and 1),
    FOREIGN KEY(symptom_id) REFERENCES symptoms (symptom_id),
    FOREIGN KEY(rca_id) REFERENCES rcas (rca_id),
    FOREIGN KEY(case_no) REFERENCES cases (case_no)
);
CREATE INDEX symptoms_of_rca ON symptom_rca (rca_id);

CREATE TABLE launches (
    launch_id INTEGER NOT NULL,
    circuit_id INTEGER NOT NULL,
    launch_key TEXT NOT NULL,
    rp_launch_id INTEGER,
    uuid TEXT NOT NULL,
    name TEXT NOT NULL,
    status TEXT NOT NULL,
    started_at FLOAT,
    ended_at FLOAT,
    env_attributes TEXT NOT NULL,
    git_branch TEXT NOT NULL,
    git_commit TEXT NOT NULL,
    git_remote TEXT NOT NULL,
    url TEXT NOT NULL,
    ci_url TEXT NOT NULL,
    project TEXT NOT NULL,
    tests INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    skipped INTEGER NOT NULL,
    payload TEXT NOT NULL,
    PRIMARY KEY (launch_id),
    CONSTRAINT one_launch_per_key UNIQUE (circuit_id, launch_key),
    FOREIGN KEY(circuit_id) REFERENCES circuits (circuit_id)
);

CREATE TABLE jobs (
    job_id INTEGER NOT NULL,
    launch_id INTEGER NOT NULL,
    rp_item_id INTEGER,
    name TEXT NOT NULL,
    clock_type TEXT NOT NULL,
    status TEXT NOT NULL,
    tests INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    skipped INTEGER NOT NULL,
    started_at FLOAT,
    ended_at FLOAT,
    PRIMARY KEY (job_id),
    CONSTRAINT one_job_per_name UNIQUE (launch_id, name),
    CONSTRAINT jobs_of_launch UNIQUE (launch_id, job_id),
    FOREIGN KEY(launch_id) REFERENCES launches (launch_id)
);

CREATE TABLE rca_cases (
    case_no INTEGER NOT NULL,
    job_id INTEGER NOT NULL,
    launch_id INTEGER NOT NULL,
    failure_id TEXT NOT NULL,
    rp_item_id INTEGER,
    name TEXT NOT NULL,
    class_name TEXT NOT NULL,
    status TEXT NOT NULL,
    symptom_id INTEGER,
    rca_id INTEGER,
    error_message TEXT NOT NULL,
    error_pattern TEXT NOT NULL,
    test_name_pattern TEXT NOT NULL,
    features TEXT NOT NULL,
    log_snippet TEXT NOT NULL,
    log_truncated INTEGER NOT NULL,
    fingerprint TEXT NOT NULL,
    bands TEXT NOT NULL,
    started_at FLOAT,
    ended_at FLOAT,
    created_at FLOAT NOT NULL,
    updated_at FLOAT NOT NULL,
    decision TEXT NOT NULL,
    reviewed_by TEXT NOT NULL,
    is_regression INTEGER NOT NULL,
    recalled INTEGER NOT NULL,
    notes TEXT NOT NULL,
    draft TEXT NOT NULL,
    PRIMARY KEY (case_no),
    FOREIGN KEY(launch_id, job_id) REFERENCES jobs (launch_id, job_id),
    FOREIGN KEY(symptom_id, rca_id) REFERENCES symptom_rca (symptom_id, rca_id),
    CONSTRAINT one_case_per_failure UNIQUE (launch_id, failure_id),
    CONSTRAINT rca_case_status CHECK (
        status in ('open', 'triaged', 'investigated', 'reviewed', 'closed')
    ),
    CONSTRAINT rca_case_decision CHECK (decision in ('', 'approve', 'overturn')),
    CONSTRAINT rca_case_reviewed CHECK (status != 'reviewed' or decision != ''),
    FOREIGN KEY(case_no) REFERENCES cases (case_no),
    FOREIGN KEY(symptom_id) REFERENCES symptoms (symptom_id),
    FOREIGN KEY(rca_id) REFERENCES rcas (rca_id)
);
CREATE INDEX cases_not_closed ON rca_cases (launch_id) WHERE status != 'closed';
CREATE INDEX cases_of_rca ON rca_cases (rca_id, status);
CREATE INDEX cases_of_symptom ON rca_cases (symptom_id, rca_id);

CREATE TABLE triages (
    case_no INTEGER NOT NULL,
    category TEXT NOT NULL,
    severity TEXT NOT NULL,
    hypothesis TEXT NOT NULL,
    candidate_repos TEXT NOT NULL,
    skip INTEGER NOT NULL,
    clock_skew INTEGER NOT NULL,
    "cascade" INTEGER NOT NULL,
    notes TEXT NOT NULL,
    created_at FLOAT NOT NULL,
    PRIMARY KEY (case_no),
    CONSTRAINT triage_category CHECK (
        category in ('product', 'automation', 'infra', 'flake', 'firmware', 'unknown')
    ),
    FOREIGN KEY(case_no) REFERENCES rca_cases (case_no)
);

-- Runs of tests at single commits, kept by what was run, so that none is run twice.
CREATE TABLE reproduction_runs (
    "key" TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    record TEXT NOT NULL,
    at FLOAT NOT NULL,
    PRIMARY KEY ("key", attempt),
    CONSTRAINT reproduction_attempt CHECK (attempt >= 1)
) WITHOUT ROWID;

CREATE TABLE reproductions (
    suite_id INTEGER NOT NULL,
    family TEXT NOT NULL,
    case_no INTEGER NOT NULL,
    record TEXT NOT NULL,
    at FLOAT NOT NULL,
    PRIMARY KEY (suite_id, family),
    FOREIGN KEY(suite_id) REFERENCES suites (suite_id),
    FOREIGN KEY(case_no) REFERENCES cases (case_no)
) WITHOUT ROWID;

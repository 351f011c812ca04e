"""RCA's tables: investigations (suite, CI pipeline, launch, job, case, triage) and knowledge.

A suite is a run and an RCA case is a case: the kernel's rows hold where they stand, these what they
are about. A symptom is a story that failures tell again and again; a root cause explains some of
them. What must always hold is a constraint here, so that no writer can forget it. Knowledge refers
to no suite. Runs of tests at single commits are kept by what was run, so that none is run twice.
"""

from sqlalchemy import (
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from interlock.journal.schema import Number, cases, runs
from interlock.rca.analyst.triage import CATEGORIES

metadata = MetaData()

_OPEN = text("status = 'open'")
_ACTIVE = text("status = 'active'")
_NOT_CLOSED = text("status != 'closed'")

symptoms = Table(
    "symptoms",
    metadata,
    Column("symptom_id", Number, primary_key=True),
    Column("fingerprint", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("error_pattern", Text, nullable=False),
    Column("test_name_pattern", Text, nullable=False),
    Column("features", Text, nullable=False),
    Column("component", Text, nullable=False),
    Column("severity", Text, nullable=False),
    Column("first_seen_at", Float, nullable=False),
    Column("last_seen_at", Float, nullable=False),
    Column("occurrence_count", Number, nullable=False),
    Column("status", Text, nullable=False),
    UniqueConstraint("fingerprint", name="one_symptom_per_fingerprint"),
    CheckConstraint("fingerprint != ''", name="symptom_fingerprint"),
    CheckConstraint("status in ('active', 'dormant', 'resolved')", name="symptom_status"),
    CheckConstraint("occurrence_count >= 1", name="symptom_count"),
    CheckConstraint("first_seen_at <= last_seen_at", name="symptom_times"),
)

symptom_bands = Table(
    "symptom_bands",
    metadata,
    Column("band", Number, primary_key=True, autoincrement=False),
    Column("symptom_id", ForeignKey("symptoms.symptom_id"), primary_key=True),
    sqlite_with_rowid=False,
)

sightings = Table(
    "sightings",
    metadata,
    Column("symptom_id", ForeignKey("symptoms.symptom_id"), primary_key=True),
    Column("case_no", ForeignKey(cases.c.case_no), primary_key=True),
    Column("at", Float, nullable=False),
    sqlite_with_rowid=False,
)

rcas = Table(
    "rcas",
    metadata,
    Column("rca_id", Number, primary_key=True),
    Column("case_no", ForeignKey(cases.c.case_no), nullable=False),
    Column("attempt", Number, nullable=False),
    Column("title", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("defect_type", Text, nullable=False),
    Column("category", Text, nullable=False),
    Column("component", Text, nullable=False),
    Column("affected_versions", Text, nullable=False),
    Column("evidence", Text, nullable=False),
    Column("convergence_score", Float),
    Column("jira_ticket_id", Text, nullable=False),
    Column("jira_link", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("resolved_at", Float),
    Column("verified_at", Float),
    Column("archived_at", Float),
    UniqueConstraint("case_no", "attempt", name="one_rca_per_attempt"),
    CheckConstraint("attempt >= 0", name="rca_attempt"),
    CheckConstraint(f"category in {CATEGORIES}", name="rca_category"),
    CheckConstraint("convergence_score between 0 and 1", name="rca_score"),
    CheckConstraint("status in ('open', 'resolved', 'verified', 'archived')", name="rca_status"),
    CheckConstraint("(status = 'archived') = (archived_at is not null)", name="rca_archived"),
    CheckConstraint(
        "status = 'archived' or (resolved_at is not null) = (status in ('resolved', 'verified'))",
        name="rca_resolved",
    ),
    CheckConstraint(
        "status = 'archived' or (verified_at is not null) = (status = 'verified')",
        name="rca_verified",
    ),
    CheckConstraint(
        "created_at <= resolved_at and resolved_at <= verified_at and created_at <= archived_at"
        " and resolved_at <= archived_at and verified_at <= archived_at",
        name="rca_times",
    ),
    Index("one_open_rca_per_case", "case_no", unique=True, sqlite_where=_OPEN),
)

symptom_rca = Table(
    "symptom_rca",
    metadata,
    Column("symptom_id", ForeignKey("symptoms.symptom_id"), primary_key=True),
    Column("rca_id", ForeignKey("rcas.rca_id"), primary_key=True),
    Column("case_no", ForeignKey(cases.c.case_no), nullable=False),
    Column("confidence", Float),
    Column("notes", Text, nullable=False),
    Column("linked_at", Float, nullable=False),
    CheckConstraint("confidence between 0 and 1", name="link_confidence"),
    Index("symptoms_of_rca", "rca_id"),
)


suites = Table(
    "suites",
    metadata,
    Column("suite_id", Number, primary_key=True, autoincrement=False),
    Column("run_id", ForeignKey(runs.c.run_id), nullable=False),
    Column("name", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("closed_at", Float),
    UniqueConstraint("run_id", name="one_suite_per_run"),
    CheckConstraint("status in ('open', 'closed')", name="suite_status"),
    CheckConstraint("(status = 'closed') = (closed_at is not null)", name="suite_closed"),
    CheckConstraint("created_at <= closed_at", name="suite_times"),
)

versions = Table(
    "versions",
    metadata,
    Column("version_id", Number, primary_key=True),
    Column("label", Text, nullable=False),
    UniqueConstraint("label", name="one_version_per_label"),
)

circuits = Table(
    "circuits",
    metadata,
    Column("circuit_id", Number, primary_key=True),
    Column("suite_id", ForeignKey("suites.suite_id"), nullable=False),
    Column("version_id", ForeignKey("versions.version_id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("started_at", Float),
    Column("ended_at", Float),
    UniqueConstraint("suite_id", "version_id", "name", name="one_circuit_per_name"),
)

launches = Table(
    "launches",
    metadata,
    Column("launch_id", Number, primary_key=True),
    Column("circuit_id", ForeignKey("circuits.circuit_id"), nullable=False),
    Column("launch_key", Text, nullable=False),
    Column("rp_launch_id", Number),
    Column("uuid", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("started_at", Float),
    Column("ended_at", Float),
    Column("env_attributes", Text, nullable=False),
    Column("git_branch", Text, nullable=False),
    Column("git_commit", Text, nullable=False),
    Column("git_remote", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("ci_url", Text, nullable=False),
    Column("project", Text, nullable=False),
    Column("tests", Number, nullable=False),
    Column("failed", Number, nullable=False),
    Column("skipped", Number, nullable=False),
    Column("payload", Text, nullable=False),
    UniqueConstraint("circuit_id", "launch_key", name="one_launch_per_key"),
)

jobs = Table(
    "jobs",
    metadata,
    Column("job_id", Number, primary_key=True),
    Column("launch_id", ForeignKey("launches.launch_id"), nullable=False),
    Column("rp_item_id", Number),
    Column("name", Text, nullable=False),
    Column("clock_type", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("tests", Number, nullable=False),
    Column("failed", Number, nullable=False),
    Column("skipped", Number, nullable=False),
    Column("started_at", Float),
    Column("ended_at", Float),
    UniqueConstraint("launch_id", "name", name="one_job_per_name"),
    UniqueConstraint("launch_id", "job_id", name="jobs_of_launch"),
)

rca_cases = Table(
    "rca_cases",
    metadata,
    Column("case_no", ForeignKey(cases.c.case_no), primary_key=True),
    Column("job_id", Number, nullable=False),
    Column("launch_id", Number, nullable=False),
    Column("failure_id", Text, nullable=False),
    Column("rp_item_id", Number),
    Column("name", Text, nullable=False),
    Column("class_name", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("symptom_id", ForeignKey("symptoms.symptom_id")),
    Column("rca_id", ForeignKey("rcas.rca_id")),
    Column("error_message", Text, nullable=False),
    Column("error_pattern", Text, nullable=False),
    Column("test_name_pattern", Text, nullable=False),
    Column("features", Text, nullable=False),
    Column("log_snippet", Text, nullable=False),
    Column("log_truncated", Number, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("bands", Text, nullable=False),
    Column("started_at", Float),
    Column("ended_at", Float),
    Column("created_at", Float, nullable=False),
    Column("updated_at", Float, nullable=False),
    Column("decision", Text, nullable=False),
    Column("reviewed_by", Text, nullable=False),
    Column("is_regression", Number, nullable=False),
    Column("recalled", Number, nullable=False),
    Column("notes", Text, nullable=False),
    Column("draft", Text, nullable=False),
    ForeignKeyConstraint(["launch_id", "job_id"], ["jobs.launch_id", "jobs.job_id"]),
    ForeignKeyConstraint(
        ["symptom_id", "rca_id"], ["symptom_rca.symptom_id", "symptom_rca.rca_id"]
    ),
    UniqueConstraint("launch_id", "failure_id", name="one_case_per_failure"),
    CheckConstraint(
        "status in ('open', 'triaged', 'investigated', 'reviewed', 'closed')",
        name="rca_case_status",
    ),
    CheckConstraint("decision in ('', 'approve', 'overturn')", name="rca_case_decision"),
    CheckConstraint("status != 'reviewed' or decision != ''", name="rca_case_reviewed"),
    Index("cases_of_symptom", "symptom_id", "rca_id"),
    Index("cases_of_rca", "rca_id", "status"),
    Index("cases_not_closed", "launch_id", sqlite_where=_NOT_CLOSED),
)

triages = Table(
    "triages",
    metadata,
    Column("case_no", ForeignKey("rca_cases.case_no"), primary_key=True),
    Column("category", Text, nullable=False),
    Column("severity", Text, nullable=False),
    Column("hypothesis", Text, nullable=False),
    Column("candidate_repos", Text, nullable=False),
    Column("skip", Number, nullable=False),
    Column("clock_skew", Number, nullable=False),
    Column("cascade", Number, nullable=False),
    Column("notes", Text, nullable=False),
    Column("created_at", Float, nullable=False),
    CheckConstraint(f"category in {CATEGORIES}", name="triage_category"),
)

reproduction_runs = Table(
    "reproduction_runs",
    metadata,
    Column("key", Text, primary_key=True),
    Column("attempt", Number, primary_key=True, autoincrement=False),
    Column("record", Text, nullable=False),
    Column("at", Float, nullable=False),
    CheckConstraint("attempt >= 1", name="reproduction_attempt"),
    sqlite_with_rowid=False,
)

reproductions = Table(
    "reproductions",
    metadata,
    Column("suite_id", ForeignKey("suites.suite_id"), primary_key=True),
    Column("family", Text, primary_key=True),
    Column("case_no", ForeignKey(cases.c.case_no), nullable=False),
    Column("record", Text, nullable=False),
    Column("at", Float, nullable=False),
    sqlite_with_rowid=False,
)

analyst_models = Table(
    "analyst_models",
    metadata,
    Column("model_id", Number, primary_key=True),
    Column("status", Text, nullable=False),
    Column("evaluation", Text, nullable=False),
    Column("examples", Text, nullable=False),
    Column("made_at", Float, nullable=False),
    CheckConstraint("status in ('active', 'retired', 'refused')", name="model_status"),
    Index("one_active_model", "status", unique=True, sqlite_where=_ACTIVE),
)
